// `zinc-rt bench serve`: puts a load on any server with OpenAI's API, and reports what the clients measured.
#include "tools/bench_serve.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/options.h"
#include "base/print.h"
#include "base/read_number.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

constexpr double kDefaultDuration_s = 30;

struct ServeBenchCommand {
  ServeBenchOptions options;
  ServeTenant load;
  std::string api_key, prompt = "128", output = "64", extra_body, json_path, markdown_path, plot_path;
  std::vector<std::string> tenants;
};

template <class Number>
bool read_between(std::string_view text, Number low, Number high, Number& out) {
  return read_number(text, out) && out >= low && out <= high;
}

// Sets each tenant's settings from the common options and the tenant's own options.
Status settle(ServeBenchCommand& c) {
  auto& o = c.options;
  if (c.api_key.empty()) c.api_key = options::get("ZINC_RT_API_KEY");
  c.load.name = "all";
  c.load.key = c.api_key;
  ZRT_TRY(c.load.prompt, parse_token_range(c.prompt));
  ZRT_TRY(c.load.output, parse_token_range(c.output));
  if (!c.extra_body.empty()) {
    o.extra_body = nlohmann::ordered_json::parse(c.extra_body, nullptr, false);
    if (!o.extra_body.is_object())
      return fail(StatusCode::kInvalidArgument, "--extra-body: \"{}\" is given, a JSON object wanted", c.extra_body);
  }
  for (const auto& text : c.tenants) {
    ZRT_TRY(auto tenant, parse_serve_tenant(text, c.load));
    o.tenants.push_back(std::move(tenant));
  }
  if (o.tenants.empty()) o.tenants.push_back(c.load);
  bool is_bounded = true;
  for (const auto& tenant : o.tenants) is_bounded = is_bounded && tenant.n_requests > 0;
  if (o.duration_s <= 0 && !is_bounded) o.duration_s = kDefaultDuration_s;
  return {};
}

Result<int> bench_server(const ServeBenchCommand& c) {
  raise_descriptor_limit();
  ZRT_TRY(const auto result, measure_server(c.options));
  print_out("{}", serve_bench_text(result, false));
  const auto json = serve_bench_json(result).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  ZRT_CHECK_OK(write_whole(c.json_path, json + '\n'));
  ZRT_CHECK_OK(write_whole(c.markdown_path, serve_bench_text(result, true)));
  ZRT_CHECK_OK(write_whole(c.plot_path, serve_bench_svg(result)));
  for (const auto& sample : result.samples)
    if (sample.how != ServeSample::kFailed) return kDone;
  return result.samples.empty() ? kDone : kFailed;
}

}  // namespace

Result<TokenRange> parse_token_range(const std::string& text) {
  const auto dash = text.find('-');
  const std::string_view low = std::string_view(text).substr(0, dash),
                         high = dash == std::string::npos ? low : std::string_view(text).substr(dash + 1);
  TokenRange range;
  if (!read_between(low, 1u, 1u << 24, range.low) || !read_between(high, range.low, 1u << 24, range.high))
    return fail(StatusCode::kInvalidArgument, "\"{}\" is given, a number of tokens or a range such as 16-64 wanted",
                text);
  return range;
}

Result<ServeTenant> parse_serve_tenant(const std::string& text, const ServeTenant& others) {
  ServeTenant tenant = others;
  std::string_view rest = text;
  for (bool is_first = true; is_first || !rest.empty(); is_first = false) {
    const auto comma = rest.find(',');
    const auto part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (is_first) {
      tenant.name = part;
      if (part.empty() || part.find('=') != std::string_view::npos)
        return fail(StatusCode::kInvalidArgument, "\"{}\" does not begin with a name", text);
      continue;
    }
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    const auto value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    bool is_good = true;
    if (key == "key") {
      tenant.key = value;
    } else if (key == "clients") {
      is_good = read_between(value, 1u, 100'000u, tenant.clients);
      tenant.rate = 0;
    } else if (key == "rate") {
      is_good = read_between(value, 1e-6, 1e6, tenant.rate);
    } else if (key == "requests") {
      is_good = read_between(value, 1u, 1u << 30, tenant.n_requests);
    } else if (key == "start") {
      is_good = read_between(value, 0.0, 1e6, tenant.start_s);
    } else if (key == "prompt" || key == "output") {
      ZRT_TRY((key == "prompt" ? tenant.prompt : tenant.output), parse_token_range(std::string(value)));
    } else {
      return fail(StatusCode::kInvalidArgument,
                  "\"{}\" has \"{}\"; key, clients, rate, requests, start, prompt and output are known", text, part);
    }
    if (!is_good) return fail(StatusCode::kInvalidArgument, "\"{}\": no good number in \"{}\"", text, part);
  }
  return tenant;
}

void add_bench_serve(CLI::App& bench, int& exit) {
  auto c = std::make_shared<ServeBenchCommand>();
  auto& o = c->options;
  auto& command = *bench.add_subcommand("serve", "a load on a server with OpenAI's API, and what its clients saw");
  command.footer(
      "Example: zinc-rt bench serve --url http://127.0.0.1:8080 --clients 8 --duration 20 --plot load.svg\n"
      "  zinc-rt bench serve --url http://127.0.0.1:8080 --tenant a,key=$A,clients=40 --tenant b,key=$B,rate=2\n"
      "Two short requests before the load tell how many tokens a word of the prompts has.");
  command.add_option("--url", o.url, "such as http://127.0.0.1:8080; /v1 may follow")->required();
  command.add_option("--api-key", c->api_key, "of tenants that name none (or ZINC_RT_API_KEY)");
  command.add_option("--model", o.model, "its name; else the first that the server has");
  command.add_option("--api", o.api, "chat or completions")
      ->check(CLI::IsMember({"chat", "completions"}))
      ->capture_default_str();
  command.add_option(
      "--tenant", c->tenants,
      "NAME[,key=K][,clients=N][,rate=R][,requests=N][,start=S][,prompt=A-B][,output=A-B], once for each; "
      "the options below are for what it does not say");
  command.add_option("--clients", c->load.clients, "closed loop: clients that ask again when their answer has ended")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command.add_option("--rate", c->load.rate, "open loop instead: requests a second at random moments (Poisson)")
      ->check(CLI::PositiveNumber);
  command.add_option("--prompt", c->prompt, "tokens of a prompt, or a range such as 32-256")->capture_default_str();
  command.add_option("--output", c->output, "most tokens of an answer, or a range")->capture_default_str();
  command.add_option("--shared-prefix", o.shared_prefix, "tokens before each prompt (in a chat, the system message)")
      ->check(CLI::Range(0, 1 << 24));
  command.add_option("--shared-part", o.shared_part, "part of the requests for which they are the same")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--drop", o.drop_part,
                  "part of the requests that hang up: half of them within 0.5 s, half after a random token")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--requests", c->load.n_requests, "of each tenant; else as many as --duration has room for")
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("--duration", o.duration_s, "seconds in which requests begin; without --requests 30")
      ->check(CLI::PositiveNumber);
  command.add_option("--timeout", o.timeout_s, "seconds for a request")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--ignore-eos", o.ignore_eos, "ask for answers of full length, of servers that know that field");
  command.add_option("--extra-body", c->extra_body,
                     "further fields of each request, such as '{\"temperature\": 0, \"logprobs\": 5}'");
  command.add_option("--seed", o.seed, "of prompts, lengths and moments")->check(whole_number())->capture_default_str();
  command.add_option("--json", c->json_path, "a file to write, with every request");
  command.add_option("--markdown", c->markdown_path, "a file to write");
  command.add_option("--plot", c->plot_path, "an SVG file to write");
  command.add_flag("--progress", o.progress, "show the progress even where stderr is no terminal");
  command.callback([c, &exit] {
    if (const auto settled = settle(*c); !settled) throw CLI::ValidationError(settled.error().message);
    const auto done = bench_server(*c);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
