// `zinc-rt models`, `pull`, `rm` and `alias`: manage models by name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/print.h"
#include "hub/catalogue.h"
#include "hub/remote.h"
#include "hub/store.h"
#include "model/config.h"
#include "model/gguf/reader.h"
#include "model/weights.h"
#include "tools/command.h"
#include "tools/table.h"
#include "tools/units.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

// Facts holds what is known of a model from its file, without running the model.
struct Facts {
  std::string family, quant, why_not;  // why_not: reason why the file cannot be used; all other members are then empty
  std::uint64_t n_parameters = 0, context = 0, weight_bytes = 0;
  std::uint64_t kv_bytes_per_token = 0;  // with a KV cache of type i16
};

// Returns the K and V bytes of one token with type i16. Recurrent layers, and layers that read another layer's K and V,
// add nothing.
std::uint64_t kv_bytes_of_token(const ModelConfig& c) {
  std::uint64_t values = 0;
  for (std::uint32_t layer = 0; layer + c.n_shared_kv_layers < c.n_layers; ++layer) {
    if (c.is_recurrent[layer]) continue;
    const bool is_sliding = layer < c.is_sliding.size() && c.is_sliding[layer];
    const std::uint64_t heads = layer < c.n_kv_heads_per_layer.size() ? c.n_kv_heads_per_layer[layer] : c.n_kv_heads;
    const std::uint64_t width = is_sliding && c.sliding_head_dim > 0
                                    ? std::uint64_t{c.sliding_head_dim} + c.sliding_v_head_dim
                                    : std::uint64_t{c.head_dim} + c.v_head_dim;
    values += heads * (width + 2);  // each head has two more elements: a scale for K and a scale for V
  }
  return 2 * values;
}

Facts facts_of(const std::string& path) {
  Facts facts;
  const auto weights = Weights::open(path);
  if (!weights) {
    facts.why_not = weights.error().message;
    return facts;
  }
  facts.weight_bytes = weights->total_bytes();
  std::uint64_t most = 0;
  for (const auto& [dtype, bytes] : weights->bytes_by_dtype())
    if (bytes > most) most = bytes, facts.quant = to_string(dtype);
  for (const auto& tensor : weights->all()) facts.n_parameters += tensor.n_elements();
  const auto config = read_config(weights->metadata(), weights->infos());
  if (!config) {
    facts.why_not = config.error().message;
    return facts;
  }
  facts.family = config->architecture;
  facts.context = config->context_length;
  facts.kv_bytes_per_token = kv_bytes_of_token(*config);
  return facts;
}

struct ModelsOptions {
  bool catalogue = false, json = false;
  std::uint32_t slots = 1, context = 4096;
};

int print_catalogue(bool is_json) {
  if (is_json) {
    Json list = Json::array();
    for (const auto& e : hub::catalogue())
      list.push_back({{"name", e.name}, {"source", e.source}, {"size", e.size}, {"what", e.what}});
    print_out("{}\n", list.dump());
    return kDone;
  }
  Table table{{"NAME", "SIZE", "WHAT", "FROM"}};
  for (const auto& e : hub::catalogue())
    table.push_back({std::string(e.name), std::string(e.size), std::string(e.what), std::string(e.source)});
  print_out(
      "{}\nAny other: zinc-rt pull OWNER/REPO[:QUANT] of Hugging Face, ollama:NAME[:TAG], or a URL of a GGUF file.\n",
      as_text(table));
  return kDone;
}

int print_models(const ModelsOptions& o) {
  const hub::Store store;
  Json list = Json::array();
  const auto memory = fmt::format("MEMORY, {} x {}", o.slots, o.context);
  Table table{{"NAME", "SIZE", "FAMILY", "PARAMETERS", "WEIGHTS", "CONTEXT", memory, "ALSO"}};
  std::vector<std::string> broken;
  for (const auto& model : store.list()) {
    const auto facts = facts_of(model.path.string());
    const auto context = facts.context > 0 ? std::min<std::uint64_t>(o.context, facts.context) : o.context;
    const auto bytes = facts.weight_bytes + o.slots * context * facts.kv_bytes_per_token;
    list.push_back({{"name", model.name},
                    {"path", model.path.string()},
                    {"bytes", model.bytes},
                    {"family", facts.family},
                    {"n_parameters", facts.n_parameters},
                    {"weights", facts.quant},
                    {"context_length", facts.context},
                    {"memory_bytes", facts.why_not.empty() ? Json(bytes) : Json()},
                    {"aliases", model.aliases},
                    {"source", model.source},
                    {"sha256", model.sha256},
                    {"error", facts.why_not.empty() ? Json() : Json(facts.why_not)}});
    if (!facts.why_not.empty()) broken.push_back(model.name + ": " + facts.why_not);
    const auto if_good = [&](std::string text) { return facts.why_not.empty() ? std::move(text) : std::string("-"); };
    table.push_back({model.name, bytes_text(model.bytes), if_good(facts.family),
                     if_good(count_text(facts.n_parameters)), if_good(facts.quant),
                     if_good(fmt::format("{}", facts.context)), if_good(bytes_text(bytes)),
                     fmt::format("{}", fmt::join(model.aliases, ", "))});
  }
  if (o.json) {
    print_out("{}\n", Json{{"folder", store.folder().string()}, {"models", std::move(list)}}.dump(
                          -1, ' ', false, Json::error_handler_t::replace));
    return kDone;
  }
  if (table.size() == 1) {
    print_out("No models in {}.\nzinc-rt models --catalogue lists names to fetch; zinc-rt pull NAME fetches one.\n",
              store.folder().string());
    return kDone;
  }
  print_out("{}in {}; memory: weights, and the KV cache of {} full {} of {} tokens in f16\n", as_text(table),
            store.folder().string(), o.slots, o.slots == 1 ? "slot" : "slots", o.context);
  for (const auto& words : broken) print_out("! {}\n", words);
  return kDone;
}

struct PullOptions {
  std::string name, as;
  bool progress = false, json = false;
};

// Returns the file name for a downloaded model: the name that --as gives, else the model's own.
Result<std::filesystem::path> place_of(const hub::Store& store, const hub::NamedFile& file, const std::string& as,
                                       const std::string& source) {
  auto name = file.name;
  if (!as.empty()) name = as + name.substr(hub::name_of_file(name).size());
  auto path = store.folder() / name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return path;
  for (const auto& model : store.list()) {
    if (std::ranges::find(model.files, path) == model.files.end() || model.source == source) continue;
    return fail(StatusCode::kInvalidArgument, "[pull] {} is there already, {}; --as NAME stores this one as another",
                path.string(), model.source.empty() ? "not fetched by this program" : "fetched from " + model.source);
  }
  return path;
}

// Fails for a file that is truncated or is not a model, so that it gets no name. The first file of a split model may
// have no tensors.
Status check_model_file(const std::filesystem::path& path) {
  ZRT_TRY(const auto file, MappedFile::open(path.string()));
  ZRT_TRY(const auto parsed, gguf::parse(file.bytes(), "the file"));
  if (parsed.tensors.empty() && !parsed.metadata.contains("split.count"))
    return fail(StatusCode::kCorrupt, "a GGUF file of {} bytes without tensors, a model's wanted", file.bytes().size());
  return {};
}

Result<int> pull(const PullOptions& o) {
  const hub::Store store;
  if (store.folder().empty())
    return fail(StatusCode::kInvalidArgument, "[pull] no folder for models: set ZINC_RT_MODELS, or HOME");
  if (!o.as.empty() && (!hub::is_good_name(o.as) || o.as.find('/') != std::string::npos))
    return fail(StatusCode::kInvalidArgument, "[pull] --as {}: letters, digits and . _ - : wanted", o.as);
  ZRT_TRY(const auto reference, hub::parse_reference(o.name));
  ZRT_TRY(const auto files, hub::files_of(reference));
  std::error_code why;
  std::filesystem::create_directories(store.folder(), why);
  if (why) return fail(StatusCode::kUnavailable, "[pull] {}: {}", store.folder().string(), why.message());
  Json out{{"name", ""}, {"source", reference.text()}, {"files", Json::array()}};
  std::filesystem::path first;  // the file that an engine opens
  for (const auto& file : files) {
    ZRT_TRY(const auto path, place_of(store, file, o.as, reference.text()));
    std::error_code ignored;
    Json fetched{{"path", path.string()}, {"url", file.remote.url}};
    const bool is_there = std::filesystem::exists(path, ignored) &&
                          (file.remote.bytes == 0 || std::filesystem::file_size(path, ignored) == file.remote.bytes);
    if (is_there) {
      fetched["bytes"] = std::filesystem::file_size(path, ignored);
      fetched["was_there"] = true;
    } else {
      if (!o.json)
        print_err("{}{}\n", file.remote.url,
                  file.remote.bytes > 0 ? ", " + bytes_text(file.remote.bytes) : std::string());
      ZRT_TRY(const auto done,
              hub::download(file.remote, path, progress_bar("fetching", o.progress), check_model_file));
      fetched["bytes"] = done.bytes;
      fetched["resumed_bytes"] = done.resumed_bytes;
      fetched["sha256"] = done.sha256;
      fetched["is_checked"] = !file.remote.sha256.empty();
      ZRT_CHECK_OK(hub::Store::note_source(path, reference.text(), file.remote.url, done.sha256, done.bytes));
    }
    if (first.empty()) first = path;
    out["files"].push_back(std::move(fetched));
  }
  auto name = hub::name_of_file(first);
  for (const auto& model : store.list())
    if (model.path == first) name = model.name;
  out["name"] = name;
  if (!reference.alias.empty() && o.as.empty()) {
    ZRT_CHECK_OK(store.add_alias(reference.alias, name));
    out["alias"] = reference.alias;
  }
  if (o.json) {
    print_out("{}\n", out.dump(-1, ' ', false, Json::error_handler_t::replace));
    return kDone;
  }
  const auto& last = out["files"].back();
  const auto word = reference.alias.empty() || !o.as.empty() ? name : reference.alias;
  if (last.contains("was_there"))
    print_out("{} is there already: {}\n", name, first.string());
  else if (last["is_checked"].get<bool>())
    print_out("{} is there, its sha256 as the site says it: {}\n", name, first.string());
  else
    print_out("{} is there: {}\nThe site gives no sha256 to compare with; the file's is {}\n", name, first.string(),
              last["sha256"].get<std::string>());
  if (const auto facts = facts_of(first.string()); !facts.why_not.empty())
    print_out("This version cannot run it: {}\n", facts.why_not);
  else
    print_out("Next: zinc-rt chat {}\n", word);
  return kDone;
}

}  // namespace

void add_models(CLI::App& app, int& exit) {
  auto o = std::make_shared<ModelsOptions>();
  auto& command = *app.add_subcommand("models", "list the models that are here, or that have names to fetch them by");
  command.footer(
      "Example: zinc-rt models --slots 8 --context 8192\n"
      "  zinc-rt models --catalogue\n"
      "The folder is ZINC_RT_MODELS, else zinc_rt/models in XDG_DATA_HOME or ~/.local/share. GGUF files and MLC "
      "folders\n"
      "that are put there, or below, are found by name too.");
  command.add_flag("--catalogue", o->catalogue, "names that `zinc-rt pull` knows");
  command.add_option("--slots", o->slots, "memory for this many requests at once")->capture_default_str();
  command.add_option("--context", o->context, "of this many tokens each")->capture_default_str();
  command.add_flag("--json", o->json, "as one JSON object");
  command.callback([o, &exit] { exit = o->catalogue ? print_catalogue(o->json) : print_models(*o); });
}

void add_pull(CLI::App& app, int& exit) {
  auto o = std::make_shared<PullOptions>();
  auto& command = *app.add_subcommand("pull", "fetch a model into the models folder, by name or URL");
  command.footer(
      "Example: zinc-rt pull smollm2:135m\n"
      "  zinc-rt pull bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M     Hugging Face (HF_TOKEN for gated ones)\n"
      "  zinc-rt pull ollama:llama3.2:1b                              Ollama's registry\n"
      "  zinc-rt pull https://example.com/model.gguf\n"
      "A transfer that was cut off goes on where it ended. The file is compared with the sha256 that the site gives.");
  command.add_option("NAME", o->name, "a name of the catalogue, OWNER/REPO[:QUANT], ollama:NAME[:TAG], or a URL")
      ->required();
  command.add_option("--as", o->as, "store it under this name");
  command.add_flag("--progress", o->progress, "show the progress bar even where stderr is no terminal");
  command.add_flag("--json", o->json, "print one JSON object at the end");
  command.callback([o, &exit] {
    const auto done = pull(*o);
    exit = done ? *done : report(done.error());
  });
}

void add_rm(CLI::App& app, int& exit) {
  auto names = std::make_shared<std::vector<std::string>>();
  auto& command = *app.add_subcommand("rm", "remove models from the models folder, or aliases");
  command.footer("Example: zinc-rt rm smollm2-135m-instruct-q8_0");
  command.add_option("NAME", *names, "of models, whose files are deleted, or of aliases")->required();
  command.callback([names, &exit] {
    for (const auto& name : *names) {
      const auto removed = hub::Store().remove(name);
      if (!removed) {
        exit = report(removed.error());
        return;
      }
      if (removed->files.empty())
        print_out("the alias {} of {} is removed\n", name, removed->name);
      else
        print_out("{} is removed, {}\n", removed->name, bytes_text(removed->bytes));
    }
  });
}

void add_alias(CLI::App& app, int& exit) {
  struct Options {
    std::string alias, model;
  };
  auto o = std::make_shared<Options>();
  auto& command = *app.add_subcommand("alias", "give a model another name");
  command.footer("Example: zinc-rt alias default smollm2-135m-instruct-q8_0");
  command.add_option("ALIAS", o->alias, "the new name")->required();
  command.add_option("MODEL", o->model, "a model that is here")->required();
  command.callback([o, &exit] {
    const auto done = hub::Store().add_alias(o->alias, o->model);
    if (!done) exit = report(done.error());
  });
}

}  // namespace zinc_rt::tools
