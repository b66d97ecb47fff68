# A server in a container: docs/install.md says how it is built and run.
# With the GPU tier: BUILD_BASE is an image of the same release as BASE that has nvcc, and ZRT_CUDA is ON.
ARG BASE=debian:12-slim
ARG BUILD_BASE=debian:12

FROM ${BUILD_BASE} AS build
ARG ZRT_CUDA=OFF
ARG ZRT_CUDA_ARCHITECTURES=
ARG ZRT_COMMIT=
COPY . /src
WORKDIR /src
RUN --mount=type=cache,target=/src/.cache/ccache bash scripts/package.sh deb

# --build-context package=FOLDER takes a .deb that is there already instead, and builds nothing.
FROM scratch AS package
COPY --from=build /src/build/release/packages/*.deb /

FROM ${BASE}
# curl is for the health check.
RUN --mount=type=bind,from=package,target=/package \
    apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /package/*.deb curl && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --uid 10001 --user-group --home-dir /var/lib/zinc_rt --create-home zinc-rt && \
    mkdir /models
USER 10001:10001
WORKDIR /var/lib/zinc_rt
# What NVIDIA's container toolkit brings in, where it runs.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
EXPOSE 8080
VOLUME ["/models", "/var/lib/zinc_rt"]
HEALTHCHECK --interval=30s --timeout=5s --start-period=10m CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8080/readyz"]
ENTRYPOINT ["zinc-rt", "serve", "--host", "0.0.0.0", "--state", "/var/lib/zinc_rt/state.db"]
CMD ["--config", "/etc/zinc_rt/zinc.toml"]
