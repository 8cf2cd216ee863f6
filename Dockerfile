# All services and the `atelier` command in one small image; the chart picks the command.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist --package atelier-cli --package atelier-kernel --package atelier-provider \
      --package atelier-tracker --package atelier-asset --package atelier-gateway \
 && mkdir /out \
 && cp target/dist/atelier target/dist/kernel-svc target/dist/provider-svc target/dist/tracker-svc target/dist/asset-svc \
      target/dist/gateway /out/

FROM debian:bookworm-slim
RUN useradd --uid 10001 --user-group --no-create-home atelier && mkdir /data && chown atelier:atelier /data
COPY --from=build /out/ /usr/local/bin/
USER 10001:10001
ENV ATELIER_DATA=/data
VOLUME /data
EXPOSE 7777
ENTRYPOINT []
CMD ["atelier", "up", "--listen", "127.0.0.1:7777"]
