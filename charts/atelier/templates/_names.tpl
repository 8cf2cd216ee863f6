{{- define "atelier.name" -}}{{ printf "%s-%s" .root.Release.Name .component | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "atelier.selector" -}}
app.kubernetes.io/name: atelier
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- define "atelier.labels" -}}
{{ include "atelier.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}
{{- define "atelier.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}
{{- define "atelier.peer" -}}http://{{ include "atelier.name" . }}:{{ (index .root.Values.services .component).port }}{{- end }}
