// Submits a request: checks it on the client's thread, then puts it into the inbox of a step loop.
#include <algorithm>
#include <iterator>
#include <random>

#include "base/error.h"
#include "engine/clock.h"
#include "engine/core.h"
#include "sched/placement.h"

namespace zinc_rt {

// Returns the number of tokens to generate if the request wants as many as fit. It is at least 1, so that the later
// error for a prompt that is too long can name the prompt's length.
std::uint32_t EngineCore::room_for(const Model& model, const TenantState& tenant, std::size_t n_prompt) {
  std::uint64_t context = model.info().max_context;
  {
    const std::lock_guard lock(tenant.mutex);
    context = std::min<std::uint64_t>(context, tenant.quota.max_context_tokens);
    context = std::min(context, std::uint64_t{tenant.quota.max_kv_pages} * kPageTokens);
  }
  context = std::min(context, std::uint64_t{model.info().n_pages} * kPageTokens);
  return context > n_prompt ? static_cast<std::uint32_t>(context - n_prompt) : 1;
}

// Returns the limit on a prompt's tokens, the largest number that check_request() accepts.
PromptRoom EngineCore::prompt_room(const Model& model, const TenantState& tenant, bool generates) {
  const std::uint64_t next = generates ? 1 : 0;
  PromptRoom room{model.info().max_context - next, fmt::format("context of model \"{}\"", model.name()),
                  Reason::kContextLength};
  const auto at_most = [&](std::uint64_t tokens, const char* bound, Reason reason = Reason::kNone) {
    if (tokens < room.tokens) room = {tokens, bound, reason};
  };
  const std::lock_guard lock(tenant.mutex);
  at_most(tenant.quota.max_context_tokens - next, "the tenant's max_context_tokens", Reason::kContextLength);
  at_most(std::uint64_t{tenant.quota.max_kv_pages} * kPageTokens, "the tenant's max_kv_pages");
  at_most(std::uint64_t{model.info().n_pages} * kPageTokens, "the model's KV pages");
  return room;
}

Status EngineCore::check_request(const Model& model, const TenantState& tenant, const Request& request,
                                 std::size_t n_prompt) {
  sched::Quota quota;
  {
    const std::lock_guard lock(tenant.mutex);
    quota.max_kv_pages = tenant.quota.max_kv_pages;
    quota.max_context_tokens = tenant.quota.max_context_tokens;
  }
  sched::Options options;
  options.max_context = model.info().max_context;
  options.n_pages = model.info().n_pages;
  // The scheduler checks again, because reservations may change before the request runs.
  if (auto fits = sched::check_request(n_prompt, request.max_tokens, quota, options, 0); !fits) {
    const auto context = std::min(options.max_context, quota.max_context_tokens);
    if (n_prompt + (request.max_tokens > 0) > context) fits.error().reason = Reason::kContextLength;
    return fits;
  }
  const std::uint32_t queued = model.n_queued.load();
  if (queued + request.n <= model.options().queue_cap) return {};
  auto error = fail(StatusCode::kExhausted, "[engine] {} requests wait and {} came, {} may wait (queue_cap)", queued,
                    request.n, model.options().queue_cap);
  error.error().retry_after_s = 1;
  return error;
}

// If the request needs a grammar, compiles it (or finds it in the cache) and sets the mask of the prompt's answer.
Status EngineCore::bind_output(Model& model, const TenantState& tenant, const Request& request, Prompt& prompt) {
  const output::ToolTypes no_tools;
  const GrammarInput input{model.formats(), request, prompt.bound_tools, prompt.tools ? *prompt.tools : no_tools,
                           prompt.opens_reasoning};
  if (!wants_grammar(input)) return {};
  ZRT_TRY(const auto vocabulary, model.vocabulary());
  const auto key = grammar_key(input);
  auto grammar = model.grammars().find(tenant.id, key);
  if (!grammar) {
    Result<grammar::Grammar> made = fail(StatusCode::kInternal, "[grammar] it was not made");
    ZRT_CHECK_OK(compiles_.run(tenant.name, [&] { made = make_grammar(input); }, request.cancel));
    if (!made) return std::unexpected(std::move(made).error());
    grammar = OutputGrammar{*std::move(made)};
    model.grammars().add(tenant.id, key, *grammar);
  }
  // The first mask fills the grammar's tables, so it may take as long as many later ones. It is computed here, before
  // the request reaches a step loop, so that it delays no step.
  const auto mask = std::make_shared<AnswerMask>(*grammar, vocabulary);
  ZRT_CHECK_OK(mask_maker_.make(tenant.name, *mask, request.cancel));
  prompt.mask = mask;
  return {};
}

Result<EngineCore::Placed> EngineCore::place(const Model& model, const TenantState& tenant, const std::string& salt,
                                             mem::SpanView prompt) const {
  const auto& replicas = model.replicas();
  std::vector<sched::ReplicaLoad> loads;
  const auto book = book_.lock();
  for (const auto& replica : replicas) {
    ZRT_CHECK_OK(check_loaded(model, *replica));
    const sched::Scheduler& scheduler = replica->runner().scheduler();
    loads.push_back({scheduler.cached_tokens(tenant.id, salt, prompt), 0});
    if (replicas.size() > 1) loads.back().backlog_tokens = scheduler.backlog_tokens() + replica->tokens_on_their_way;
  }
  const auto i = sched::choose_replica(loads, sched::placement_key(tenant.name, salt, prompt));
  return Placed{replicas[i].get(), static_cast<std::uint32_t>(loads[i].cached_tokens)};
}

Result<std::vector<std::shared_ptr<Generation>>> EngineCore::submit(const std::shared_ptr<TenantState>& tenant,
                                                                    Request request, const std::string& system,
                                                                    std::shared_ptr<Sink> sink) {
  const auto check_cancel = [&]() -> Status {
    if (!request.cancel.stop_requested()) return {};
    return fail(StatusCode::kCancelled, "[engine] the request was taken back");
  };
  const auto prepare = [&]() -> Result<std::vector<std::shared_ptr<Generation>>> {
    ZRT_CHECK_OK(check_open());
    if (is_draining_.load()) return fail(StatusCode::kUnavailable, "[engine] the engine takes no more requests");
    ZRT_TRY(const auto model, this->model(request.model));
    if (model->is_closing.load())
      return fail(StatusCode::kUnavailable, "[engine] model \"{}\" is being removed", model->name());
    ZRT_CHECK_OK(Generation::check(request, *model));
    sched::Qos qos;
    {
      const std::lock_guard lock(tenant->mutex);
      ZRT_TRY(qos, parse_qos(tenant->quota.qos_class));
    }
    if (!request.qos.empty()) {
      const auto wanted = parse_qos(request.qos);
      if (!wanted) return std::unexpected(about("qos", wanted.error()));
      qos = std::max(qos, *wanted);
    }
    ZRT_CHECK_OK(check_cancel());
    const char* field = Generation::prompt_field(request);
    ZRT_TRY(auto prompt,
            Generation::take_prompt(*model, request, system, prompt_room(*model, *tenant, request.max_tokens > 0)));
    ZRT_CHECK_OK(check_cancel());
    if (request.max_tokens == Request::kAllThatFit) request.max_tokens = room_for(*model, *tenant, prompt.ids.size());
    if (const auto fits = check_request(*model, *tenant, request, prompt.ids.size()); !fits)
      return std::unexpected(about(field, fits.error()));
    ZRT_CHECK_OK(bind_output(*model, *tenant, request, prompt));
    ZRT_CHECK_OK(check_cancel());
    if (model->prefill_mode() == PrefillMode::kValidate) ZRT_CHECK_OK(validate_prefill(*model, prompt.ids));
    const std::uint64_t seed =
        request.seed ? *request.seed : std::random_device{}() * 0x100000000ull + std::random_device{}();
    // All choices share their prompt's pages, so they run on one replica.
    Placed placed{model->replicas().front().get(), 0};
    if (model->replicas().size() > 1) {
      ZRT_TRY(placed, place(*model, *tenant, request.cache_salt, prompt.ids));
    }
    placed.replica->tokens_on_their_way += request.n * (prompt.ids.size() - placed.cached_tokens);
    std::vector<std::shared_ptr<Generation>> generations;
    for (std::uint32_t i = 0; i < request.n; ++i) {
      constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // so that the first choice keeps the given seed
      auto g = std::make_shared<Generation>(model, tenant, request, prompt, seed + i * kGolden, i, sink);
      g->pending = g->params(prompt.ids, qos);
      g->pending.n_cached = placed.cached_tokens;
      g->replica = placed.replica;
      g->on_cancel = [core = weak_from_this(), weak = std::weak_ptr(g)] {
        const auto self = core.lock();
        auto generation = weak.lock();
        if (!self || !generation) return;
        Replica& replica = *generation->replica;
        self->post(replica, {{Command::kEnd, std::move(generation), sched::Finish::kCancelled}});
      };
      g->on_wait = waiter();
      if (i > 0) g->leader = generations[0];
      generations.push_back(std::move(g));
    }
    return generations;
  };
  auto generations = prepare();
  if (!generations) {
    const std::lock_guard lock(tenant->mutex);
    tenant->accounting.rejected();
    return generations;
  }
  std::vector<Command> commands;
  for (const auto& g : *generations) {
    ++n_open_;
    ++g->model().n_open;
    ++g->model().n_queued;
    g->model().last_used.store(now_us());
    g->self = g;
    commands.push_back({Command::kSubmit, g, {}});
  }
  // All choices are posted at once, because the leader must exist when its siblings arrive.
  post(*generations->front()->replica, std::move(commands));
  return generations;
}

void EngineCore::post(Replica& replica, std::vector<Command> commands) {
  // `commands` is moved to the step loop. If the loop refuses them, their generations are ended here.
  std::vector<std::shared_ptr<Generation>> submitted;
  for (const Command& command : commands)
    if (command.kind == Command::kSubmit) submitted.push_back(command.generation);
  if (replica.loop().post(std::move(commands))) return;
  for (const auto& generation : submitted) {
    // The engine was closed after the check, so neither the step thread nor the drainer will see the generation.
    generation->fail_with(fail(StatusCode::kUnavailable, "[engine] the engine is closed").error());
    --generation->model().n_queued;
    forget(*generation);
  }
}

}  // namespace zinc_rt
