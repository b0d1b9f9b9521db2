# Builds Inlay with all dependencies. The image contains Node from the base image, the production dependencies and dist. Only Node
# depends on the architecture, so the machine that builds runs no program of another one.
FROM --platform=$BUILDPLATFORM node:24-slim AS build
WORKDIR /inlay
COPY package.json package-lock.json tsconfig.json tsconfig.build.json ./
RUN npm ci --ignore-scripts
COPY src ./src
RUN npm run prepare

FROM --platform=$BUILDPLATFORM node:24-slim AS dependencies
WORKDIR /inlay
COPY package.json package-lock.json ./
# The optional packages contain Node, for machines with an older version.
RUN npm ci --ignore-scripts --omit=dev --omit=optional

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /inlay
COPY LICENSE package.json ./
COPY --from=dependencies /inlay/node_modules ./node_modules
COPY --from=build /inlay/dist ./dist
# The base image's user node, as a number, so that Kubernetes knows that it is not root. Inlay writes nothing to disk.
USER 1000
# Without this flag, SIGUSR1 opens a debugger, which can read all memory.
ENTRYPOINT ["node", "--disable-sigusr1", "/inlay/dist/main.js"]
CMD ["--help"]
