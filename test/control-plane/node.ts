/** The manifest of the one Node of a control plane with controllers. KWOK makes the Node ready. */
export const NODE_NAME = "kwok-0";

const room = { cpu: "10k", memory: "100Ti", pods: "1M" };

export const nodeManifest = JSON.stringify({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: NODE_NAME,
    labels: { "kubernetes.io/hostname": NODE_NAME, "kubernetes.io/os": "linux", type: "kwok" },
    annotations: { "node.alpha.kubernetes.io/ttl": "0" },
  },
  status: { allocatable: room, capacity: room },
});
