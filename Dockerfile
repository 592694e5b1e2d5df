# syntax=docker/dockerfile:1.26@sha256:ecfaec9ed6d810b56388c508f4121597bfbba70d41a6dfeee4d8cad5f295fc32
# Builds the image of a release. docs/operations/installation.md describes how to run it, and test/shipping/image.test.ts
# runs these steps.
FROM node:26.10.0-trixie-slim@sha256:ec7758ee051e457b468b32bde57b0879010b325bb9862718e9615225ce4aaae1 AS base

FROM base AS build
WORKDIR /src
# The manifests of the workspaces lie beside their sources, so the sources are copied before the install.
COPY . .
RUN npm ci --ignore-scripts --no-audit --no-fund
# The build context has no Git repository, so the commit is an argument.
ARG TOOLHOST_COMMIT=unknown
RUN npm run build && mkdir data

FROM base
WORKDIR /app
COPY package.json LICENSE ./
COPY bin/toolhost.js bin/toolhost
COPY --from=build /src/lib lib
# A new volume inherits the owner of its mount point.
COPY --from=build --chown=10001:10001 /src/data /data
# Disables the compile cache, because the root file system may be read-only. With the memory settings of bin/toolhost.js,
# the launcher does not have to start Node again.
ENV PATH=/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    NODE_ENV=production \
    NODE_DISABLE_COMPILE_CACHE=1 \
    NODE_OPTIONS="--max-semi-space-size=8 --v8-pool-size=1" \
    MALLOC_ARENA_MAX=1 \
    DATA_DIR=/data
USER 10001:10001
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=1s \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PORT ?? 8080}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The launcher is the service, or execs it, so the service is process 1 and receives the signals.
STOPSIGNAL SIGTERM
ENTRYPOINT ["toolhost"]
CMD ["serve"]
