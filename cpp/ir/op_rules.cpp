#include "ir/op_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/kv_type.h"
#include "ir/text.h"
#include "kernels/common/operands.h"
#include "kernels/common/push.h"

// The table of rules is written as text. A row is "operand operand ... -> result result ... ; attribute attribute ...",
// where
//   operand    [!]name[?]:types[dims]. "!": the type of this operand selects the kernel. "?": it may be absent.
//   types      one or several of these, joined by "|":
//                a dtype's name, such as f32
//                W   any weight format
//                A   f32, or the activation type that the weight wants
//                KV  any type of a cell of the KV cache (base/kv_type.h); some types add elements to the row's extent
//   dims       joined by ",": a number, a variable, an attribute, or a product of them such as n_heads*head_dim
//   result     one of
//                name:types[dims]   a fresh buffer
//                name~:types[dims]  a fresh buffer, or the node's first input, written in place
//                name=input         the input with this name, updated in place
//   attribute  name:u32 or name:f32
namespace zinc_rt::ir {
namespace {

struct Row {
  Op op;
  std::string_view text;
};

constexpr std::string_view kAttention =
    "q:f32[n,n_heads*head_dim] !kv_k:KV[pages,16,n_kv_heads*head_dim] kv_v:KV[pages,16,n_kv_heads*v_head_dim] "
    "pos:i32[n] slot:i32[n] page_table:i32[s,m] sinks?:f32[n_heads] -> y:f32[n,n_heads*v_head_dim] ; "
    "n_heads:u32 n_kv_heads:u32 head_dim:u32 v_head_dim:u32 scale:f32 window:u32 softcap:f32";

constexpr Row kRows[] = {
    {Op::EMBED, "ids:i32[n] !table:W[v,d] slot?:i32[n] slots?:u32[s,fields] -> y:f32[n,d] ; scale:f32"},
    {Op::RMS_NORM, "x:f32[n,d] w?:f32[group] -> y~:f32[n,d] ; eps:f32 group:u32"},
    {Op::RMS_NORM_FUSED_QKV,
     "x:f32[n,d] norm_w:f32[d] !q_w:W[nq,d] k_w:W[nk,d] v_w:W[nv,d] q_b?:f32[nq] k_b?:f32[nk] v_b?:f32[nv] -> "
     "q:f32[n,nq] k:f32[n,nk] v:f32[n,nv] ; eps:f32 quantize:u32"},
    {Op::RMS_NORM_FUSED_MLP_GATE_UP,
     "x:f32[n,d] norm_w:f32[d] !gate_w:W[f,d] up_w:W[f,d] -> gate:f32[n,f] up:f32[n,f] ; eps:f32 quantize:u32"},
    {Op::ROPE, "x:f32[n,d] pos:i32[n] table:f32[p,n_rot] -> y~:f32[n,d] ; head_dim:u32 n_rot:u32 neox:u32"},
    {Op::RMS_NORM_FUSED_ROPE_KV_WRITE,
     "q:f32[n,nq] k:f32[n,nk] v:f32[n,nv] q_norm?:f32[head_dim] k_norm?:f32[head_dim] pos:i32[n] slot:i32[n] "
     "table:f32[p,n_rot] page_table:i32[s,m] !kv_k:KV[pages,16,nk] kv_v:KV[pages,16,nv] -> "
     "q_out~:f32[n,nq] k_cache=kv_k v_cache=kv_v ; eps:f32 head_dim:u32 n_rot:u32 neox:u32"},
    {Op::FLASH_ATTN, kAttention},
    {Op::FLASH_ATTN_BATCHED, kAttention},
    {Op::MOE_GATE_TOPK,
     "x:A[n,d] !gate_w:W[e,d] bias?:f32[e] choice_bias?:f32[e] -> logits:f32[n,e] ids:i32[n,n_used] "
     "weights:f32[n,n_used] ; n_used:u32 renormalize:u32 scale:f32 gating:u32 groups:u32 groups_used:u32"},
    {Op::MOE_GATE_UP, "x:A[n,d] !gate_w:W[e,f,d] up_w:W[e,f,d] ids:i32[n,k] -> gate:f32[n,k*f] up:f32[n,k*f]"},
    {Op::MOE_SWIGLU, "gate:f32[n,f] up:f32[n,f] -> y~:f32[n,f] ; act:u32"},
    {Op::MOE_DOWN_ACC,
     "x:A[n,k*f] !down_w:W[e,d,f] ids:i32[n,k] weights:f32[n,k] expert_scale?:f32[e] hidden:f32[n,d] -> out=hidden"},
    {Op::SHARED_EXPERT,
     "x:f32[n,d] !gate_w:W[f,d] up_w:W[f,d] down_w:W[d,f] gate_inp?:f32[d] hidden:f32[n,d] -> out=hidden ; act:u32 "
     "quantize:u32"},
    {Op::SSM_CONV1D,
     "x:f32[n,c] conv_w:f32[c,width] bias?:f32[biases] pos:i32[n] slot:i32[n] state:f32[s,taps,c] runs:u32[slots,5] "
     "saved:f32[slots,k,c] -> y:f32[n,c] next=state kept=saved ; width:u32 taps:u32 act:u32"},
    {Op::SSM_DELTA_NET,
     "x:f32[n,c] beta:f32[n,n_v_heads] alpha:f32[n,n_v_heads] a:f32[n_v_heads] dt:f32[n_v_heads] pos:i32[n] "
     "slot:i32[n] state:f32[s,n_v_heads,k_dim,v_dim] runs:u32[slots,5] saved:f32[slots,2,k,w] -> "
     "y:f32[n,n_v_heads*v_dim] next=state kept=saved ; "
     "n_k_heads:u32 n_v_heads:u32 k_dim:u32 v_dim:u32 tiled:u32 eps:f32"},
    {Op::SSM_GATED_NORM,
     "x:f32[n,d] z:f32[n,d] w:f32[w_groups,group] -> y~:f32[n,d] ; eps:f32 group:u32 gate_first:u32"},
    {Op::RESIDUAL_RMS_NORM, "residual:f32[n,d] x:f32[n,d] w:f32[d] -> y:f32[n,d] sum=residual ; eps:f32"},
    {Op::LM_HEAD, "x:A[n,d] !w:W[v,d] -> logits:f32[n,v]"},
    {Op::ARGMAX, "logits:f32[n,v] -> token:i32[n]"},
    {Op::SAMPLE, "logits:f32[n,v] params:u32[n,18] history:i32[h] bias:u32[b,2] mask:u32[m] -> token:i32[n]"},
    {Op::KV_WRITE_BATCHED,
     "k:f32[n,nk] v:f32[n,nv] pos:i32[n] slot:i32[n] page_table:i32[s,m] !kv_k:KV[pages,16,nk] kv_v:KV[pages,16,nv] -> "
     "k_cache=kv_k v_cache=kv_v ; head_dim:u32"},
    {Op::MATMUL_WMMA_F16, "a:f16[n,k] !b:f16|bf16[m,k] -> c:f32[n,m]"},
    {Op::MATMUL_WMMA_Q4K, "a:q8a256[n,k] !b:q4_k[m,k] -> c:f32[n,m]"},
    {Op::BARRIER, "->"},
    {Op::STREAM_OUT, "token:i32[n] slot:i32[n] ring:u32[entries,4] -> out=ring"},
    {Op::LOAD_REQUEST_STATE, "slots:u32[s,fields] slot:i32[n] -> value:u32|i32[n] ; field:u32"},
    {Op::STORE_REQUEST_STATE, "slots:u32[s,fields] slot:i32[n] value:u32|i32[n] -> out=slots ; field:u32"},
    {Op::VERIFY_K, "draft:i32[b,k] logits:f32[b,k,v] -> accept_len:i32[b]"},
    {Op::LINEAR, "x:A[n,k] !w:W[m,k] bias?:f32[m] -> y:f32[n,m]"},
    {Op::QUANTIZE, "x:f32[n,k] -> y:q8a32|q8a256|q16a256[n,k]"},
    {Op::ADD, "x:f32[n,d] y:f32[n,d] -> z~:f32[n,d]"},
    {Op::GLU, "gate:f32[n,f] up:f32[n,f] -> y~:f32[n,f] ; act:u32"},
    {Op::SCALE, "x:f32[n,d] w?:f32[1] -> y~:f32[n,d] ; scale:f32"},
    {Op::SOFTCAP, "x:f32[n,d] -> y~:f32[n,d] ; cap:f32"},
    {Op::SIGMOID_MUL, "x:f32[n,d] gate:f32[n,d] -> y~:f32[n,d]"},
    {Op::GATHER_ROWS, "x:f32[n,d] rows:i32[r] -> y:f32[r,d]"},
    {Op::SLICE, "x:f32[n,groups*group] -> y:f32[n,groups*width] ; groups:u32 group:u32 first:u32 width:u32"},
    {Op::MOE_LINEAR, "x:A[n,rows*d] !w:W[e,f,d] ids:i32[n,k] -> y:f32[n,k*f] ; rows:u32"},
    {Op::MOE_SUM, "y:f32[n,k*d] ids:i32[n,k] weights:f32[n,k] expert_scale?:f32[e] -> z:f32[n,d]"},
    {Op::COPY_ROWS, "from:i32[n] to:i32[n] rows:f32[s,w] -> next=rows"},
    {Op::POOL_MEAN, "x:f32[n,d] pos:i32[n] slot:i32[n] sum:f32[s,d] -> y:f32[n,d] next=sum"},
    {Op::LAYER_NORM, "x:f32[n,d] w:f32[d] b?:f32[d] -> y~:f32[n,d] ; eps:f32"},
    {Op::GELU, "x:f32[n,f] -> y~:f32[n,f]"},
    {Op::LOGPROBS, "logits:f32[n,v] token:i32[n] params:i32[n,2] -> stats:u32[n,260]"},
    {Op::MOE_ADD_BIAS, "y:f32[n,k*f] ids:i32[n,k] bias:f32[e,f] -> out=y"},
    {Op::LINEAR_HEADS, "x:A[n,h*k] !w:W[h,m,k] -> y:f32[n,h*m]"},
    {Op::CONCAT, "a:f32[n,groups*first] b:f32[n,d] -> y:f32[n,groups*width] ; groups:u32 first:u32 width:u32"},
    {Op::MOE_SCALE, "x:f32[n,w] ids:i32[n,k] expert_scale:f32[e] -> y~:f32[n,w]"},
    {Op::MUL, "x:f32[n,d] y:f32[n,d] -> z~:f32[n,d]"},
    {Op::SSM_SCAN,
     "x:f32[n,c] dt:f32[n,n_heads] a:f32[n_heads,1] dt_bias:f32[n_heads] d:f32[n_heads,1] pos:i32[n] slot:i32[n] "
     "state:f32[s,n_heads,state_dim,head_dim] runs:u32[slots,5] saved:f32[slots,2,k,w] -> "
     "y:f32[n,n_heads*head_dim] next=state kept=saved ; n_heads:u32 n_groups:u32 head_dim:u32 state_dim:u32"},
    {Op::RELU2, "x:f32[n,f] -> y~:f32[n,f]"},
};
static_assert(std::size(kRows) == kOpCount);

// Returns the index of the first character that is in `marks`, or the text's size if there is none. It replaces
// string_view::find_first_of, which GCC does not accept in a constant expression in sanitizer builds.
constexpr std::size_t first_of(std::string_view text, std::string_view marks) {
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char mark : marks)
      if (text[i] == mark) return i;
  return text.size();
}
constexpr bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

// Returns whether a row's operands (inputs, then results) have the names of a list "x, w, y" of
// kernels/common/operands.h. Kernels use the names of kernels/common/operands.h, so these must agree with the rules.
constexpr bool has_operands(Op op, std::string_view names) {
  const auto* row = std::ranges::find(kRows, op, &Row::op);
  std::string_view text = row->text.substr(0, first_of(row->text, ";"));
  while (!text.empty()) {
    const auto end = first_of(text, " ");
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty() || are_equal(word, "->")) continue;
    if (word[0] == '!') word.remove_prefix(1);
    word = word.substr(0, first_of(word, "?~=:"));
    if (!are_equal(names.substr(0, first_of(names, ",")), word)) return false;
    names.remove_prefix(std::min(word.size() + 2, names.size()));
  }
  return names.empty();
}
#define ZRT_HAS_OPERANDS(opcode, Name, ...) \
  static_assert(has_operands(Op::opcode, operand::Name::kText), "operands.h and the rule of " #opcode " differ");
ZRT_OPERANDS(ZRT_HAS_OPERANDS)
#undef ZRT_HAS_OPERANDS
// kernels/common/operands.h must list every op except BARRIER, which has no operands. The macro counts its entries.
#define ZRT_ONE_MORE(opcode, Name, ...) +1
static_assert(0 ZRT_OPERANDS(ZRT_ONE_MORE) == kOpCount - 1);
#undef ZRT_ONE_MORE

constexpr std::uint64_t bit(DType dtype) {
  return std::uint64_t{1} << static_cast<unsigned>(dtype);
}
static_assert(static_cast<unsigned>(DType::kCount) <= 64);

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    const auto part = text.substr(0, end);
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::uint64_t parse_types(std::string_view text) {
  std::uint64_t set = 0;
  for (const auto name : split(text, '|')) {
    if (name == "A") {
      set |= bit(DType::kF32) | bit(DType::kQ8A32) | bit(DType::kQ8A256) | bit(DType::kQ16A256);
    } else if (name == "KV") {
      for (const KvType& type : kv_types()) set |= bit(type.k) | bit(type.v);
    } else if (name == "W") {
      for (unsigned i = 0; i < static_cast<unsigned>(DType::kCount); ++i)
        if (traits(static_cast<DType>(i)).is_weight) set |= bit(static_cast<DType>(i));
    } else {
      set |= bit(*parse_dtype(name));
    }
  }
  return set;
}

OperandRule parse_operand(std::string_view text) {
  OperandRule operand;
  const auto colon = text.find(':'), open = text.find('[');
  auto name = text.substr(0, colon);
  if (name.ends_with('?')) operand.optional = true, name.remove_suffix(1);
  if (name.ends_with('~')) operand.updates = -2, name.remove_suffix(1);
  operand.name = name;
  operand.dtypes = parse_types(text.substr(colon + 1, open - colon - 1));
  for (const auto dim : split(text.substr(open + 1, text.size() - open - 2), ',')) {
    DimPattern pattern;
    for (const auto factor : split(dim, '*')) pattern.factors.emplace_back(factor);
    operand.dims.push_back(std::move(pattern));
  }
  return operand;
}

OpRule parse_row(const Row& row) {
  OpRule rule{row.op, row.text, {}, {}, {}, -1};
  const auto arrow = row.text.find("->");
  const auto semicolon = row.text.find(';');
  for (auto text : split(row.text.substr(0, arrow), ' ')) {
    if (text.starts_with('!')) rule.key_input = static_cast<std::int8_t>(rule.inputs.size()), text.remove_prefix(1);
    rule.inputs.push_back(parse_operand(text));
  }
  const auto results =
      row.text.substr(arrow + 2, semicolon == std::string_view::npos ? semicolon : semicolon - arrow - 2);
  for (const auto text : split(results, ' ')) {
    if (const auto equals = text.find('='); equals != std::string_view::npos) {
      for (std::size_t i = 0; i < rule.inputs.size(); ++i)
        if (rule.inputs[i].name == text.substr(equals + 1)) {
          auto operand = rule.inputs[i];
          operand.name = text.substr(0, equals);
          operand.updates = static_cast<std::int8_t>(i);
          rule.outputs.push_back(std::move(operand));
        }
    } else {
      rule.outputs.push_back(parse_operand(text));
    }
  }
  if (semicolon != std::string_view::npos)
    for (const auto text : split(row.text.substr(semicolon + 1), ' ')) {
      const auto colon = text.find(':');
      rule.attrs.push_back(
          {std::string(text.substr(0, colon)), text.substr(colon + 1) == "f32" ? AttrType::kF32 : AttrType::kU32});
    }
  return rule;
}

std::size_t attr_index(const OpRule& rule, std::string_view name) {
  for (std::size_t i = 0; i < rule.attrs.size(); ++i)
    if (rule.attrs[i].name == name) return i;
  return kMaxAttrs;
}

// Binds each variable to the extent at the first place where the variable alone is a dimension. match() then compares
// all other places with this value.
void bind_lone_variables(const Graph& graph, const OpRule& rule, const Node& node, Bindings& bindings) {
  for (const auto* list : {&rule.inputs, &rule.outputs})
    for (std::size_t i = 0; i < list->size(); ++i) {
      const BufferId id = list == &rule.inputs ? node.inputs[i] : node.outputs[i];
      if (id < 0 || static_cast<std::size_t>(id) >= graph.buffers().size()) continue;
      const Buffer& buffer = graph.buffer(id);
      const auto& dims = (*list)[i].dims;
      for (std::size_t d = 0; d < std::min<std::size_t>(dims.size(), buffer.rank); ++d) {
        const auto& name = dims[d].factors[0];
        const bool is_variable = (name[0] < '0' || name[0] > '9') && attr_index(rule, name) >= rule.attrs.size();
        if (dims[d].factors.size() == 1 && is_variable && bindings.find(name) == nullptr)
          bindings.entries.push_back({name, buffer.dims[d]});
      }
    }
}

// Returns the value of a dimension's pattern for this node. If a variable is still unbound, because the operand that
// would bind it is absent, binds it to `actual`.
Result<Dim> evaluate(const OpRule& rule, const Node& node, const DimPattern& pattern, Dim actual, Bindings& bindings) {
  std::uint64_t product = 1;
  for (const auto& factor : pattern.factors) {
    Dim value;
    if (factor[0] >= '0' && factor[0] <= '9') {
      value = static_cast<std::uint32_t>(std::stoul(factor));
    } else if (const auto i = attr_index(rule, factor); i < rule.attrs.size()) {
      value = node.attrs[i];
    } else if (const Dim* bound = bindings.find(factor)) {
      value = *bound;
    } else {
      bindings.entries.push_back({factor, actual});
      value = actual;
    }
    if (pattern.factors.size() == 1) return value;
    if (!value.is_const()) return fail(StatusCode::kInvalidArgument, "{} is a symbol and cannot be multiplied", factor);
    product *= value.n;
    if (product > 0xffffffffu) return fail(StatusCode::kInvalidArgument, "the product of {} overflows", factor);
  }
  return Dim(static_cast<std::uint32_t>(product));
}

// Returns how many elements a row of the KV cache has in addition to the values of its heads. Some cache types store
// scales in the additional elements.
std::uint32_t row_extra(const OpRule& rule, const Node& node, DType dtype, const Bindings& bindings) {
  const KvCell* cell = find_kv_cell(dtype);
  if (cell == nullptr || cell->head_extra == 0) return 0;
  if (const auto i = attr_index(rule, "n_kv_heads"); i < rule.attrs.size()) return node.attrs[i] * cell->head_extra;
  const Dim* width = bindings.find("nk");
  const std::uint32_t head_dim = attr_u32(node, "head_dim");
  return width != nullptr && width->is_const() && head_dim > 0 ? width->n / head_dim * cell->head_extra : 0;
}

Status match_operand(const Graph& graph, const OpRule& rule, const Node& node, const OperandRule& operand, BufferId id,
                     Bindings& bindings) {
  const auto where = [&] { return fmt::format("[ir] {} {}", to_string(node.op), operand.name); };
  if (id == kNoBuffer) {
    if (operand.optional) return {};
    return fail(StatusCode::kInvalidArgument, "{}: the operand is missing", where());
  }
  if (id < 0 || static_cast<std::size_t>(id) >= graph.buffers().size())
    return fail(StatusCode::kInvalidArgument, "{}: buffer {} is not declared, {} are", where(), id,
                graph.buffers().size());
  const Buffer& buffer = graph.buffer(id);
  if ((operand.dtypes >> static_cast<unsigned>(buffer.dtype) & 1u) == 0)
    return fail(StatusCode::kInvalidArgument, "{}: {} has type {}, which the op does not take ({})", where(),
                buffer.name, to_string(buffer.dtype), rule.text);
  if (buffer.rank != operand.dims.size())
    return fail(StatusCode::kInvalidArgument, "{}: {} has {} dimensions, {} wanted ({})", where(), buffer.name,
                buffer.rank, operand.dims.size(), rule.text);
  for (std::size_t i = 0; i < operand.dims.size(); ++i) {
    const Dim actual = buffer.dims[i];
    auto wanted = evaluate(rule, node, operand.dims[i], actual, bindings);
    if (!wanted) return fail(StatusCode::kInvalidArgument, "{}: {}", where(), wanted.error().message);
    if (wanted->is_const() && i + 1 == operand.dims.size())
      wanted = Dim(wanted->n + row_extra(rule, node, buffer.dtype, bindings));
    if (*wanted != actual)
      return fail(StatusCode::kInvalidArgument, "{}: dimension {} of {} is {}, {} wanted ({})", where(), i, buffer.name,
                  show(actual), show(*wanted), rule.text);
  }
  return {};
}

// Checks relations between types or attributes of a node that the table of rules cannot express.
Status match_relations(const Graph& graph, const OpRule& rule, const Node& node, const Bindings& bindings) {
  const auto refuse = [&](const std::string& why) {
    return fail(StatusCode::kInvalidArgument, "[ir] {}: {}", to_string(node.op), why);
  };
  // x must be f32, or the quantized type that all weights of the node need.
  if (!rule.inputs.empty() && rule.key_input >= 0 && (rule.inputs[0].dtypes & bit(DType::kQ8A32))) {
    const DType x = graph.buffer(node.inputs[0]).dtype;
    for (std::size_t i = 1; i < rule.inputs.size(); ++i) {
      if (node.inputs[i] == kNoBuffer || rule.inputs[i].dtypes != parse_types("W")) continue;
      const DType w = graph.buffer(node.inputs[i]).dtype;
      if (x != DType::kF32 && x != act_dtype(w))
        return refuse(fmt::format("{} of type {} wants activations of type {}, {} given", rule.inputs[i].name,
                                  to_string(w), to_string(act_dtype(w)), to_string(x)));
    }
  }
  // The cells of keys and of values must belong to one cache type. Kernels read cells head by head, so the type must
  // support the node's head size.
  std::optional<DType> kv_k;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    if (rule.inputs[i].name != "kv_k" && rule.inputs[i].name != "kv_v") continue;
    const DType type = graph.buffer(node.inputs[i]).dtype;
    if (kv_k && find_kv_type(*kv_k, type) == nullptr)
      return refuse(fmt::format("kv_k has type {}, kv_v {}: no KV cache has both ({})", to_string(*kv_k),
                                to_string(type), fmt::join(kv_type_names(), ", ")));
    kv_k = type;
    const auto attr = attr_index(
        rule, rule.inputs[i].name == "kv_v" && attr_index(rule, "v_head_dim") < kMaxAttrs ? "v_head_dim" : "head_dim");
    const KvCell& cell = *find_kv_cell(type);
    if (attr < rule.attrs.size() && !cell.serves(node.attrs[attr]))
      return refuse(fmt::format("a KV cache of type {} wants head_dim {}, {} given", to_string(type), cell.head_dims,
                                node.attrs[attr]));
  }
  for (const auto* list : {&rule.inputs, &rule.outputs})
    for (std::size_t i = 0; i < list->size(); ++i) {
      const BufferId id = list == &rule.inputs ? node.inputs[i] : node.outputs[i];
      if (id == kNoBuffer) continue;
      const Buffer& buffer = graph.buffer(id);
      const auto block = traits(buffer.dtype).block_elems;
      const Dim row = buffer.dims[buffer.rank - 1u];
      if (block > 1 && (!row.is_const() || row.n % block != 0))
        return refuse(fmt::format("{} has rows of {}, {} wants multiples of {}", buffer.name, show(row),
                                  to_string(buffer.dtype), block));
    }
  const auto divides = [&](std::string_view part, std::string_view whole) -> Status {
    const auto i = attr_index(rule, part);
    const Dim* dim = bindings.find(whole);
    if (i >= rule.attrs.size() || dim == nullptr || !dim->is_const()) return {};
    if (node.attrs[i] == 0 || dim->n % node.attrs[i] != 0)
      return refuse(fmt::format("{} = {} does not divide {} = {}", part, node.attrs[i], whole, dim->n));
    return {};
  };
  ZRT_CHECK_OK(divides("group", "d"));
  for (const auto* width : {"d", "nq", "nk"}) ZRT_CHECK_OK(divides("head_dim", width));
  // A token has as many heads of values as of keys; their size may be another.
  if (const Dim *nk = bindings.find("nk"), *nv = bindings.find("nv");
      attr_index(rule, "head_dim") < rule.attrs.size() && nk != nullptr && nv != nullptr && nk->is_const() &&
      nv->is_const()) {
    const std::uint32_t heads = nk->n / attr_u32(node, "head_dim");
    if (heads == 0 || nv->n % heads != 0)
      return refuse(fmt::format("{} heads of values do not divide nv = {}", heads, nv->n));
  }
  if (const auto i = attr_index(rule, "n_rot"); i < rule.attrs.size()) {
    const auto head_dim = attr_u32(node, "head_dim");
    if (node.attrs[i] % 2 != 0 || node.attrs[i] > head_dim)
      return refuse(fmt::format("n_rot = {} must be even and at most head_dim = {}", node.attrs[i], head_dim));
  }
  if (const auto i = attr_index(rule, "n_kv_heads"); i < rule.attrs.size()) {
    const auto n_heads = attr_u32(node, "n_heads");
    if (node.attrs[i] == 0 || n_heads % node.attrs[i] != 0)
      return refuse(fmt::format("n_kv_heads = {} does not divide n_heads = {}", node.attrs[i], n_heads));
  }
  if (node.op == Op::RMS_NORM_FUSED_QKV)
    for (const auto* name : {"nk", "nv"})
      if (bindings.find(name)->n > bindings.find("nq")->n)
        return refuse(
            fmt::format("{} = {} may not exceed nq = {}", name, bindings.find(name)->n, bindings.find("nq")->n));
  if (node.op == Op::MOE_GATE_TOPK) {
    const Dim* experts = bindings.find("e");
    if (attr_u32(node, "n_used") == 0 || attr_u32(node, "n_used") > experts->n)
      return refuse(fmt::format("n_used = {} of {} experts", attr_u32(node, "n_used"), experts->n));
    if (attr_u32(node, "gating") > push::kSigmoid)
      return refuse(fmt::format("gating = {}, at most {} known", attr_u32(node, "gating"), unsigned{push::kSigmoid}));
    const std::uint32_t groups = attr_u32(node, "groups"), used = attr_u32(node, "groups_used");
    if (groups == 0 || experts->n % groups != 0)
      return refuse(fmt::format("groups = {} does not divide {} experts", groups, experts->n));
    if (used == 0 || used > groups || attr_u32(node, "n_used") > experts->n / groups * used)
      return refuse(fmt::format("groups_used = {} of {} groups, for n_used = {} of {} experts", used, groups,
                                attr_u32(node, "n_used"), experts->n));
  }
  const unsigned last_act = node.op == Op::SSM_CONV1D      ? unsigned{push::kConvNone}
                            : node.op == Op::SHARED_EXPERT ? unsigned{push::kGeluTanh}
                                                           : unsigned{push::kSwigluOai};
  if (const auto i = attr_index(rule, "act"); i < rule.attrs.size() && node.attrs[i] > last_act)
    return refuse(fmt::format("act = {}, at most {} known", node.attrs[i], last_act));
  if (node.op == Op::MOE_LINEAR) {
    const Dim* chosen = bindings.find("k");
    if (const auto rows = attr_u32(node, "rows"); rows != 1 && rows != chosen->n)
      return refuse(
          fmt::format("rows = {}: 1 (all experts share a token's row) or {} (one each) wanted", rows, chosen->n));
  }
  if (node.op == Op::MOE_SCALE) {
    const Dim *width = bindings.find("w"), *chosen = bindings.find("k");
    if (!width->is_const() || !chosen->is_const() || chosen->n == 0 || width->n % chosen->n != 0)
      return refuse(fmt::format("rows of {} are not those of {} experts each", show(*width), show(*chosen)));
  }
  if (node.op == Op::SLICE) {
    const std::uint64_t group = attr_u32(node, "group"), first = attr_u32(node, "first"),
                        width = attr_u32(node, "width");
    if (width == 0 || first + width > group)
      return refuse(fmt::format("columns {} to {} of groups of {}", first, first + width, group));
  }
  if (node.op == Op::CONCAT) {
    const std::uint64_t groups = attr_u32(node, "groups"), first = attr_u32(node, "first"),
                        width = attr_u32(node, "width"), rest = bindings.find("d")->n;
    if (groups * width != groups * first + rest)
      return refuse(fmt::format("{} groups of {} and of {} in all, groups of {} wanted", groups, first, rest, width));
  }
  // Entry 0 of the output ring holds the number of tokens, so a ring for at least one token has 2 entries.
  if (node.op == Op::STREAM_OUT && bindings.find("entries")->n < 2)
    return refuse(fmt::format("a ring of {} entries, at least 2 wanted", bindings.find("entries")->n));
  if (node.op == Op::SSM_CONV1D) {
    const std::uint32_t width = attr_u32(node, "width"), taps = attr_u32(node, "taps");
    if (width == 0) return refuse("width = 0, at least 1 wanted");
    if (taps != width - 1) return refuse(fmt::format("taps = {} must be width - 1 = {}", taps, width - 1));
    const Dim *biases = bindings.find("biases"), *channels = bindings.find("c");
    if (biases != nullptr && *biases != *channels)
      return refuse(fmt::format("bias has {} values for {} channels", show(*biases), show(*channels)));
  }
  if (node.op == Op::SSM_GATED_NORM) {
    const std::uint64_t weights = bindings.find("w_groups")->n, group = attr_u32(node, "group");
    if (weights != 1 && weights * group != bindings.find("d")->n)
      return refuse(fmt::format("w has {} groups of {} for rows of {}: 1, or those of a row wanted", weights, group,
                                bindings.find("d")->n));
  }
  if (node.op == Op::SSM_SCAN) {
    const std::uint64_t heads = attr_u32(node, "n_heads"), groups = attr_u32(node, "n_groups");
    if (groups == 0 || heads % groups != 0)
      return refuse(fmt::format("n_groups = {} does not divide n_heads = {}", groups, heads));
    const std::uint64_t wanted = heads * attr_u32(node, "head_dim") + 2 * groups * attr_u32(node, "state_dim");
    if (bindings.find("c")->n != wanted)
      return refuse(fmt::format("x has {} columns, {} wanted", bindings.find("c")->n, wanted));
    // A saved row is a row of x, then dt of each head.
    if (const std::uint64_t saved = bindings.find("w")->n; saved != wanted + heads)
      return refuse(fmt::format("saved has {} columns, {} wanted", saved, wanted + heads));
  }
  if (node.op == Op::SSM_DELTA_NET) {
    const std::uint64_t nk = attr_u32(node, "n_k_heads"), nv = attr_u32(node, "n_v_heads");
    const std::uint64_t wanted = 2 * nk * attr_u32(node, "k_dim") + nv * attr_u32(node, "v_dim");
    if (nk == 0 || nv % nk != 0) return refuse(fmt::format("n_k_heads = {} does not divide n_v_heads = {}", nk, nv));
    if (bindings.find("c")->n != wanted)
      return refuse(fmt::format("x has {} columns, {} wanted", bindings.find("c")->n, wanted));
    // A saved row is a row of x, then beta and alpha of each v head.
    if (const std::uint64_t saved = bindings.find("w")->n; saved != wanted + 2 * nv)
      return refuse(fmt::format("saved has {} columns, {} wanted", saved, wanted + 2 * nv));
  }
  return {};
}

}  // namespace

const OpRule& rule(Op op) {
  static const std::vector<OpRule> rules = [] {
    std::vector<OpRule> parsed(kOpCount);
    for (const auto& row : kRows) parsed[static_cast<std::size_t>(row.op)] = parse_row(row);
    return parsed;
  }();
  return rules[static_cast<std::size_t>(op)];
}

const Dim* Bindings::find(std::string_view name) const {
  for (const auto& entry : entries)
    if (entry.name == name) return &entry.dim;
  return nullptr;
}

Result<Bindings> match(const Graph& graph, const Node& node) {
  if (static_cast<std::size_t>(node.op) >= kOpCount)
    return fail(StatusCode::kInvalidArgument, "[ir] opcode {} is unknown, {} are known", static_cast<unsigned>(node.op),
                kOpCount);
  const OpRule& row = rule(node.op);
  if (node.n_inputs != row.inputs.size() || node.n_outputs != row.outputs.size())
    return fail(StatusCode::kInvalidArgument, "[ir] {} has {} inputs and {} outputs, {} and {} wanted",
                to_string(node.op), node.n_inputs, node.n_outputs, row.inputs.size(), row.outputs.size());
  Bindings bindings;
  bind_lone_variables(graph, row, node, bindings);
  for (std::size_t i = 0; i < row.inputs.size(); ++i)
    ZRT_CHECK_OK(match_operand(graph, row, node, row.inputs[i], node.inputs[i], bindings));
  for (std::size_t i = 0; i < row.outputs.size(); ++i)
    ZRT_CHECK_OK(match_operand(graph, row, node, row.outputs[i], node.outputs[i], bindings));
  ZRT_CHECK_OK(match_relations(graph, row, node, bindings));
  return bindings;
}

std::uint32_t attr_u32(const Node& node, std::string_view name) {
  return node.attrs[attr_index(rule(node.op), name)];
}
float attr_f32(const Node& node, std::string_view name) {
  return std::bit_cast<float>(attr_u32(node, name));
}
void set_attr(Node& node, std::string_view name, std::uint32_t value) {
  node.attrs[attr_index(rule(node.op), name)] = value;
}
void set_attr(Node& node, std::string_view name, float value) {
  set_attr(node, name, std::bit_cast<std::uint32_t>(value));
}

}  // namespace zinc_rt::ir
