// The parts that encoders like BERT share: norms after each residual sum, LAYER_NORM with biases, and a head that gives
// an embedding or a score. A token attends to its whole text, so a text is computed in one step.
// Thread rule: as Builder.
#pragma once

#include "arch/blocks.h"

namespace zinc_rt::arch {

// Refuses what no encoder supports, naming it: causal attention, generation, scoring without a classifier, and a
// context longer than the file's positions.
void refuse_what_encoders_lack(Builder& b);
// Returns the normalized sum of the embeddings of tokens, of token types if the file has any, and of positions if
// with_positions.
BufferId encoder_embeddings(Builder& b, bool with_positions);
// hidden = norm(hidden + attention(hidden)). Positions are rotated if `rope` has a table.
void encoder_attention(Builder& b, BufferId hidden, std::uint32_t layer, const Rope& rope);
// Adds hidden = norm(hidden + x), which follows the layer's feed-forward network.
void add_and_norm(Builder& b, BufferId hidden, BufferId x);
// Adds pooling and returns the graph. With pooling rank it adds the classifier over the first token's row instead:
// `cls` (a dense layer with tanh), then `cls.output`. If the file has only one of the two, that one computes the score.
Result<ir::Graph> encoder_head(Builder& b, BufferId hidden);

}  // namespace zinc_rt::arch
