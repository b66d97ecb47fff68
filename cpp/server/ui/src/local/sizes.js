// Sizes of files, and how large one may be.

// The module addresses 4 GiB, and the weights are in it beside the KV cache.
const MOST_BYTES = 3e9;

// Throws if `what` is larger.
export function refuseTooLarge(what, bytes) {
  if (bytes > MOST_BYTES)
    throw new Error(`${what} has ${size(bytes)}, and a page's engine has room for ${size(MOST_BYTES)} of weights. Choose a smaller one.`);
}

export const size = (bytes) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`);
