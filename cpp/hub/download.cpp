#include "hub/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/options.h"
#include "base/read_number.h"
#include "zinc_rt/version.h"

namespace zinc_rt::hub {
namespace {

namespace fs = std::filesystem;
using client::Headers;
using client::HttpEnd;

constexpr int kMostRedirects = 8;
constexpr double kWhole_s = 7 * 24 * 3600.0;  // time limit of a transfer, in seconds
constexpr auto kStall = std::chrono::seconds(60);
constexpr std::size_t kMostText = 16u << 20;
constexpr const char* kNoNetwork =
    "; is there a network here? https_proxy names a proxy; a file that was brought otherwise goes into the folder that "
    "`zinc-rt models` names";

// Link is a URL, split into the server to connect to and the path to request.
struct Link {
  client::Url site;
  std::string target;
};

Result<Link> parse_link(const std::string& url) {
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return fail(StatusCode::kInvalidArgument, "[pull] \"{}\" is no URL", url);
  const auto slash = std::min(url.find_first_of("/?#", scheme + 3), url.size());
  Link link;
  ZRT_TRY(link.site, client::parse_url(url.substr(0, slash)));
  link.target = url.substr(slash, url.find('#', slash) - slash);
  if (!link.target.starts_with('/')) link.target.insert(0, "/");
  for (const char c : link.target)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f')
      return fail(StatusCode::kInvalidArgument, "[pull] \"{}\" has a space or a control character", url);
  return link;
}

std::string header_of(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  return read_number(text, value) ? std::optional(value) : std::nullopt;
}

// Returns the URL that a Location header means, relative to the URL that was requested.
std::string resolve(const Link& from, const std::string& location) {
  if (location.find("://") != std::string::npos) return location;
  const auto scheme = from.site.is_tls ? "https:" : "http:";
  if (location.starts_with("//")) return scheme + location;
  const auto folder = from.target.substr(0, from.target.find('?'));
  const auto path = location.starts_with('/') ? location : folder.substr(0, folder.rfind('/') + 1) + location;
  return fmt::format("{}//{}{}", scheme, from.site.authority(), path);
}

struct Answer {
  std::string url;  // URL of the last request, after redirects
  int status = 0;
  Headers headers;
};

// Makes a GET request and follows redirects. Calls take(answer, piece) for each piece of the last answer's body, until
// it returns false. Authorization in `headers` is sent only to the first host. Errors: kUnavailable if no complete
// answer comes.
using Take = std::function<bool(const Answer& answer, std::string_view piece)>;
Result<Answer> get(std::string url, const Headers& headers, const Take& take) {
  std::string first_host;
  for (int i = 0; i <= kMostRedirects; ++i) {
    ZRT_TRY(const auto link, parse_link(url));
    if (first_host.empty()) first_host = link.site.authority();
    std::optional<client::Url> proxy;
    if (const auto words = options::proxy_for(link.site.is_tls ? "https" : "http", link.site.host); !words.empty()) {
      ZRT_TRY(proxy, client::parse_url(words.find("://") == std::string::npos ? "http://" + words : words));
    }
    const auto http_or = client::HttpClient::open(link.site, proxy);
    if (!http_or) return fail(StatusCode::kUnavailable, "[pull] {}{}", http_or.error().message, kNoNetwork);
    const auto& http = *http_or;
    client::HttpCall call;
    call.target = link.target;
    call.timeout_s = kWhole_s;
    call.headers = {{"User-Agent", fmt::format("zinc-rt/{}", kVersion)}, {"Accept", "*/*"}};
    for (const auto& [name, value] : headers)
      if (name != "Authorization" || link.site.authority() == first_host) call.headers.emplace_back(name, value);
    Answer answer;
    answer.url = url;
    std::atomic<std::int64_t> last{0};
    const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
    last = now();
    std::promise<HttpEnd> promise;
    client::HttpEvents events;
    events.on_head = [&](int status, const Headers& received) {
      answer.status = status;
      answer.headers = received;
      last = now();
    };
    const auto is_redirect = [&] { return answer.status / 100 == 3 && !header_of(answer.headers, "location").empty(); };
    events.on_body = [&](std::string_view piece) {
      last = now();
      return is_redirect() || take(answer, piece);
    };
    events.on_end = [&](const HttpEnd& end) { promise.set_value(end); };
    const auto handle = http->start(std::move(call), std::move(events));
    auto over = promise.get_future();
    bool is_stalled = false;
    while (over.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready)
      if (std::chrono::steady_clock::duration(now() - last.load()) > kStall) is_stalled = true, handle->cancel();
    const auto end = over.get();
    if (is_stalled)
      return fail(StatusCode::kUnavailable, "[pull] {} sent nothing for {} s", link.site.authority(), kStall.count());
    if (end.kind != HttpEnd::kWhole && end.kind != HttpEnd::kCancelled)
      return fail(StatusCode::kUnavailable, "[pull] {}{}", end.error,
                  end.kind == HttpEnd::kNoConnect ? kNoNetwork : "");
    if (!is_redirect()) return answer;
    url = resolve(link, header_of(answer.headers, "location"));
  }
  return fail(StatusCode::kUnavailable, "[pull] {} redirects one after another, {} allowed", kMostRedirects + 1,
              kMostRedirects);
}

Status check_status(const Answer& answer) {
  const auto words = client::words_of_status(answer.status);
  switch (answer.status) {
    case 200:
    case 206: return {};
    case 401:
    case 403:
      return fail(StatusCode::kInvalidArgument,
                  "[pull] {}: {} {}: it does not exist, or wants a token (HF_TOKEN) and that its terms are accepted",
                  answer.url, answer.status, words);
    case 404: return fail(StatusCode::kNotFound, "[pull] {}: 404 {}", answer.url, words);
    default: return fail(StatusCode::kUnavailable, "[pull] {}: {} {}", answer.url, answer.status, words);
  }
}

class Sha256 {
 public:
  Sha256() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {
    unsigned char sum[32];
    EVP_DigestFinal_ex(context_.get(), sum, nullptr);
    std::string out;
    for (const unsigned char byte : sum) out += fmt::format("{:02x}", byte);
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

// Part is the .part file of a transfer. This process locks it, so that no second download writes to it.
class Part {
 public:
  static Result<Part> open(const fs::path& path) {
    Part part;
    part.path_ = path;
    part.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (part.fd_ < 0) return part.failure();
    if (::flock(part.fd_, LOCK_EX | LOCK_NB) != 0)
      return fail(StatusCode::kUnavailable, "[pull] {} is being fetched by another process", path.string());
    return part;
  }
  Part(Part&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  Part& operator=(Part&&) = delete;
  ~Part() {
    if (fd_ >= 0) ::close(fd_);
  }

  std::unexpected<Error> failure() const {
    return fail(StatusCode::kUnavailable, "[pull] {}: {}", path_.string(), std::generic_category().message(errno));
  }
  Status write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure();
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }
  Status clear() {
    if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) return failure();
    return {};
  }
  // Reads the whole .part file into the hash, and returns its size. Leaves the file's position at its end, where the
  // download continues.
  Result<std::uint64_t> read_all(Sha256& hash) {
    std::vector<char> block(1u << 20);
    std::uint64_t n_all = 0;
    for (;;) {
      const auto n = ::read(fd_, block.data(), block.size());
      if (n < 0) return failure();
      if (n == 0) return n_all;
      hash.add({block.data(), static_cast<std::size_t>(n)});
      n_all += static_cast<std::uint64_t>(n);
    }
  }
  Status become(const fs::path& to) {
    if (::fsync(fd_) != 0 || ::rename(path_.c_str(), to.c_str()) != 0) return failure();
    return {};
  }
  void remove() { ::unlink(path_.c_str()); }

 private:
  Part() = default;

  fs::path path_;
  int fd_ = -1;
};

Status check_room(const fs::path& folder, std::uint64_t wanted) {
  std::error_code why;
  const auto room = fs::space(folder, why);
  if (why || room.available >= wanted) return {};
  return fail(StatusCode::kUnavailable, "[pull] {}: {:.1f} GB are free, {:.1f} GB wanted", folder.string(),
              static_cast<double>(room.available) / 1e9, static_cast<double>(wanted) / 1e9);
}

// Returns whether a body that begins with these bytes can be a GGUF file. While fewer than 4 bytes have arrived, the
// caller calls it again after each piece.
bool may_be_gguf(std::string_view beginning) {
  return std::string_view("GGUF").starts_with(beginning.substr(0, 4));
}

// Parses a Content-Range header. For "bytes 100-199/200" returns 100 (first byte) and 200 (total).
std::optional<std::pair<std::uint64_t, std::uint64_t>> content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return {};
  text.remove_prefix(6);
  const auto dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos) return {};
  const auto first = number(text.substr(0, dash)), whole = number(text.substr(slash + 1));
  if (!first || !whole) return {};
  return std::pair(*first, *whole);
}

}  // namespace

Result<Fetched> download(const RemoteFile& file, const fs::path& to, const Progress& on_progress, const Check& check) {
  auto part_path = to;
  part_path += ".part";
  ZRT_TRY(auto part, Part::open(part_path));
  std::optional<Sha256> hash(std::in_place);
  Fetched out;
  ZRT_TRY(out.resumed_bytes, part.read_all(*hash));
  if (file.bytes > 0 && out.resumed_bytes > file.bytes) {  // the .part file belongs to another file
    ZRT_CHECK_OK(part.clear());
    hash.emplace();
    out.resumed_bytes = 0;
  }
  out.bytes = out.resumed_bytes;
  Status broken;
  std::uint64_t total = file.bytes;
  bool is_begun = false;
  std::string beginning;
  // Handles the head of the answer, which says whether the body continues the bytes that are already in the .part file.
  const auto begin = [&](const Answer& answer) -> Status {
    is_begun = true;
    ZRT_CHECK_OK(check_status(answer));
    const auto range = content_range(header_of(answer.headers, "content-range"));
    if (answer.status == 206 && (!range || range->first != out.resumed_bytes))
      return fail(StatusCode::kUnavailable, "[pull] {}: another part of the file came than was asked for", answer.url);
    if (answer.status == 200 && out.resumed_bytes > 0) {  // the site ignored the range and sends the whole file
      ZRT_CHECK_OK(part.clear());
      hash.emplace();
      out.bytes = out.resumed_bytes = 0;
    }
    const auto length = number(header_of(answer.headers, "content-length"));
    if (range && answer.status == 206)
      total = range->second;
    else if (length)
      total = *length;
    if (file.bytes > 0 && total != file.bytes)
      return fail(StatusCode::kCorrupt, "[pull] {} has {} bytes, {} wanted", answer.url, total, file.bytes);
    if (total == 0)
      return fail(StatusCode::kUnavailable, "[pull] {} does not say how long it is, so it might not end", answer.url);
    return check_room(to.parent_path(), total - std::min(total, out.bytes));
  };
  const auto take = [&](const Answer& answer, std::string_view piece) {
    if (answer.status == 416) return false;  // range not satisfiable: the .part file is complete already
    if (!is_begun) broken = begin(answer);
    if (!broken) return false;
    if (out.bytes < 4) beginning += piece.substr(0, 4);
    if (!may_be_gguf(beginning)) {
      broken = fail(StatusCode::kCorrupt, "[pull] {} is no GGUF file: it does not begin with \"GGUF\"", answer.url);
      return false;
    }
    if (piece.size() > total - out.bytes) {
      broken = fail(StatusCode::kCorrupt, "[pull] {}: more than the {} bytes came that it has", answer.url, total);
      return false;
    }
    broken = part.write(piece);
    if (!broken) return false;
    hash->add(piece);
    out.bytes += piece.size();
    if (on_progress) on_progress(out.bytes, std::max(total, out.bytes));
    return true;
  };
  if (file.bytes == 0 || out.bytes < file.bytes) {
    Headers headers;
    if (!file.token.empty()) headers.emplace_back("Authorization", "Bearer " + file.token);
    if (out.resumed_bytes > 0) headers.emplace_back("Range", fmt::format("bytes={}-", out.resumed_bytes));
    const auto answer = get(file.url, headers, take);
    if (!broken) {
      if (broken.error().code == StatusCode::kCorrupt && out.bytes < 4) part.remove();
      return std::unexpected(broken.error());
    }
    if (!answer && out.bytes == 0) part.remove();
    if (!answer)
      return fail(answer.error().code, "{}{}", answer.error().message,
                  out.bytes == 0 ? ""
                                 : fmt::format("; {:.1f} MB of it are kept, and the same command goes on from there",
                                               static_cast<double>(out.bytes) / 1e6));
    if (!is_begun && answer->status != 416) ZRT_CHECK_OK(check_status(*answer));
  }
  out.sha256 = hash->hex();
  if ((total > 0 && out.bytes != total) || out.bytes == 0) {
    part.remove();
    return fail(StatusCode::kCorrupt, "[pull] {}: {} bytes came, {} wanted; fetch it again", file.url, out.bytes,
                total);
  }
  if (!file.sha256.empty() && out.sha256 != file.sha256) {
    part.remove();
    return fail(StatusCode::kCorrupt, "[pull] {}: its sha256 is {}, {} wanted; fetch it again", file.url, out.sha256,
                file.sha256);
  }
  if (auto whole = check(part_path); !whole) {
    part.remove();
    return fail(whole.error().code, "[pull] {}: {}", file.url, whole.error().message);
  }
  ZRT_CHECK_OK(part.become(to));
  return out;
}

Result<std::string> fetch_text(const std::string& url, const Headers& headers) {
  std::string text;
  ZRT_TRY(const auto answer, get(url, headers, [&](const Answer&, std::string_view piece) {
            text += piece;
            return text.size() <= kMostText;
          }));
  ZRT_CHECK_OK(check_status(answer));
  if (text.size() > kMostText) return fail(StatusCode::kUnavailable, "[pull] {}: more than {} bytes", url, kMostText);
  return text;
}

}  // namespace zinc_rt::hub
