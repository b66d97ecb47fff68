// Sizes of files, and how large one may be.

// The module addresses 4 GiB, and the weights are in it beside the KV cache.
export const MOST_BYTES = 3e9;

export const size = (bytes) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`);
