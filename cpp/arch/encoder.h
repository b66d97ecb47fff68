// Defines the parts that encoders such as BERT share: norms after each residual sum, LAYER_NORM with biases, and a head
// that computes an embedding or a score. A token attends to its whole text, so a text must be computed in one step.
// Thread rule: as Builder.
#pragma once

#include "arch/blocks.h"

namespace zinc_rt::arch {

// Refuses a model or option that no encoder supports, and names it: causal attention, generation, scoring without a
// classifier, or a context longer than the file's table of positions.
void refuse_what_encoders_lack(Builder& b);
// Returns the normalized sum of the embeddings of tokens, of token types if the file has any, and of positions if
// with_positions is true.
BufferId encoder_embeddings(Builder& b, bool with_positions);
// Adds hidden = norm(hidden + attention(hidden)). If `rope` has a table, positions are encoded by rotating q and k.
void encoder_attention(Builder& b, BufferId hidden, std::uint32_t layer, const Rope& rope);
// Adds hidden = norm(hidden + x), which follows the layer's feed-forward network.
void add_and_norm(Builder& b, BufferId hidden, BufferId x);
// Adds pooling and returns the graph. With pooling `rank` it adds the classifier over the first token's row instead:
// `cls` (a dense layer with tanh), then `cls.output`. If the file has only one of the two layers, this layer computes
// the score.
Result<ir::Graph> encoder_head(Builder& b, BufferId hidden);

}  // namespace zinc_rt::arch
