{{- /* Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler and NetworkPolicy of one service.
       Takes: root, component, command, callers (components that may call it), peers (components that it calls),
       database (section of the settings that names its database; empty: it has none). */}}
{{- define "atelier.workload" -}}
{{- $root := .root }}
{{- $service := index $root.Values.services .component }}
{{- $http := eq .component "gateway" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "atelier.name" . }}
  labels: {{- include "atelier.labels" . | nindent 4 }}
spec:
  {{- if not $service.autoscaling.enabled }}
  replicas: {{ $service.replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "atelier.selector" . | nindent 6 }}
  strategy:
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }
  template:
    metadata:
      labels: {{- include "atelier.labels" . | nindent 8 }}
      {{- with $service.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: {{ $service.terminationGracePeriodSeconds }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: {{ .component }}
          image: {{ include "atelier.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [{{ .command | quote }}]
          args: ["--listen", "0.0.0.0:{{ $service.port }}"]
          ports:
            - name: {{ ternary "http" "grpc" $http }}
              containerPort: {{ $service.port }}
            {{- if not $http }}
            - name: admin
              containerPort: 9090
            {{- end }}
          env:
            - name: ATELIER_PROCESS__DATA_DIR
              value: /data
            {{- if not $http }}
            - name: ATELIER_PROCESS__ADMIN_LISTEN
              value: "0.0.0.0:9090"
            {{- end }}
            {{- if and .database $root.Values.database.existingSecret }}
            - name: ATELIER_{{ .database | upper }}__DATABASE_URL
              valueFrom:
                secretKeyRef: { name: {{ $root.Values.database.existingSecret }}, key: {{ $root.Values.database.key }} }
            {{- end }}
            {{- if $root.Values.identity.existingSecret }}
            - name: ATELIER_PROCESS__IDENTITY_SECRET
              valueFrom:
                secretKeyRef: { name: {{ $root.Values.identity.existingSecret }}, key: {{ $root.Values.identity.key }} }
            {{- end }}
            {{- if eq .component "asset" }}
            - name: ATELIER_ASSETS__STORE_URL
              value: {{ $root.Values.objectStore.url | quote }}
            {{- end }}
            {{- range .peers }}
            - name: ATELIER_PROCESS__PEERS__{{ . | upper }}
              value: {{ include "atelier.peer" (dict "root" $root "component" .) }}
            {{- end }}
            {{- with $service.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- if and (eq .component "provider") $root.Values.providers.existingSecret }}
          envFrom:
            - secretRef: { name: {{ $root.Values.providers.existingSecret }} }
          {{- end }}
          {{- if $http }}
          livenessProbe:
            httpGet: { path: /livez, port: http }
          readinessProbe:
            httpGet: { path: /readyz, port: http }
          {{- else }}
          livenessProbe:
            grpc: { port: {{ $service.port }} }
          readinessProbe:
            grpc: { port: {{ $service.port }} }
          {{- end }}
          resources: {{- toYaml $service.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            - { name: data, mountPath: /data }
            - { name: tmp, mountPath: /tmp }
      volumes:
        - name: tmp
          emptyDir: {}
        - name: data
          {{- if $root.Values.data.existingClaim }}
          persistentVolumeClaim: { claimName: {{ $root.Values.data.existingClaim }} }
          {{- else }}
          emptyDir: {}
          {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "atelier.name" . }}
  labels: {{- include "atelier.labels" . | nindent 4 }}
spec:
  {{- if not $http }}
  # Clients balance over the pods themselves.
  clusterIP: None
  {{- end }}
  selector: {{- include "atelier.selector" . | nindent 4 }}
  ports:
    - name: {{ ternary "http" "grpc" $http }}
      port: {{ $service.port }}
      targetPort: {{ $service.port }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "atelier.name" . }}
  labels: {{- include "atelier.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "atelier.selector" . | nindent 6 }}
{{- if $service.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "atelier.name" . }}
  labels: {{- include "atelier.labels" . | nindent 4 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ include "atelier.name" . }} }
  minReplicas: {{ $service.autoscaling.minReplicas }}
  maxReplicas: {{ $service.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ $service.autoscaling.targetCPUUtilizationPercentage }} }
{{- end }}
{{- if $root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "atelier.name" . }}
  labels: {{- include "atelier.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "atelier.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        - port: {{ $service.port }}
      {{- if not $http }}
      from:
        {{- range .callers }}
        - podSelector:
            matchLabels: {{- include "atelier.selector" (dict "root" $root "component" .) | nindent 14 }}
        {{- end }}
      {{- end }}
{{- end }}
{{- end }}
