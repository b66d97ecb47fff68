#include "server/resumable_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace zinc_rt::server {
namespace {

constexpr std::string_view kEnd = "\n\n";  // ends an event

}  // namespace

ResumableStream::ResumableStream(StreamRegistry& registry, std::string id, std::string owner,
                                 std::shared_ptr<Connection> client)
    : registry_(registry), id_(std::move(id)), owner_(std::move(owner)), client_(std::move(client)) {}

void ResumableStream::add_header(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  if (client_ != nullptr) client_->add_header(std::move(name), std::move(value));
}

void ResumableStream::note(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  if (client_ != nullptr) client_->note(std::move(name), std::move(value));
}

void ResumableStream::respond(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  if (client_ != nullptr && !is_started_) client_->respond(std::move(response));
  is_over_ = true;
}

void ResumableStream::start_stream(HttpResponse head) {
  std::shared_ptr<Connection> client;
  {
    const std::lock_guard lock(mutex_);
    is_started_ = true;
    head_ = std::move(head);
    client = client_;
    // Registered before the client receives the id, so that it can reconnect at once.
    registry_.add(shared_from_this());
    client->start_stream(head_);
  }
  watch(client);
}

// Registers a callback for the client's disconnection. REQUIRES: the caller does not hold the mutex, because on_gone()
// calls back at once if the client has disconnected already.
void ResumableStream::watch(const std::shared_ptr<Connection>& client) {
  client->on_gone([weak = weak_from_this(), client = client.get()] {
    if (const auto self = weak.lock()) self->client_left(client);
  });
}

void ResumableStream::client_left(const Connection* client) {
  std::shared_ptr<Connection> last;  // destroyed after the mutex is released
  const std::lock_guard lock(mutex_);
  if (client_.get() != client) return;
  last.swap(client_);
  alone_since_ = std::chrono::steady_clock::now();
}

void ResumableStream::keep(std::string_view events) {
  while (!events.empty()) {
    const auto end = events.find(kEnd);
    const auto event = events.substr(0, end == std::string_view::npos ? events.size() : end + kEnd.size());
    events.remove_prefix(event.size());
    events_.push_back(fmt::format("id: {}\n{}", first_ + events_.size(), event));
    kept_bytes_ += events_.back().size();
    unsent_bytes_ += events_.back().size();
  }
  trim();
}

// Drops events that were sent, as long as the limits are exceeded. REQUIRES: the caller holds mutex_.
void ResumableStream::trim() {
  registry_.keeps(*this, kept_bytes_, is_over_);
  while ((kept_bytes_ > kMostKept || registry_.is_full(owner_)) && first_ < next_sent_ && !is_over_) {
    kept_bytes_ -= events_.front().size();
    events_.pop_front();
    ++first_;
    registry_.keeps(*this, kept_bytes_, is_over_);
  }
}

// Sends as many events as the client accepts. If the stream has ended, sends all of them.
void ResumableStream::send() {
  if (client_ == nullptr) return;
  for (; next_sent_ < first_ + events_.size(); ++next_sent_) {
    const auto& event = events_[next_sent_ - first_];
    if (!client_->write(event)) break;
    unsent_bytes_ -= event.size();
  }
  if (!is_over_) return;
  std::string rest;
  for (; next_sent_ < first_ + events_.size(); ++next_sent_) rest += events_[next_sent_ - first_];
  unsent_bytes_ = 0;
  if (is_whole_)
    client_->finish(rest);
  else
    client_->abort();
  client_ = nullptr;
}

bool ResumableStream::write(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (!is_started_) return false;
  if (is_over_) return true;
  send();
  const auto most = client_ != nullptr ? kMostUnsent : registry_.is_full(owner_) ? 0 : kMostKept;
  if (unsent_bytes_ > most) return false;
  keep(piece);
  send();
  if (registry_.is_full(owner_)) trim();
  return true;
}

void ResumableStream::end(std::string_view last, bool is_whole) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  is_over_ = true;
  is_whole_ = is_whole;
  over_since_ = std::chrono::steady_clock::now();
  keep(last);
  send();
}

void ResumableStream::finish(std::string_view last) {
  end(last, true);
}

void ResumableStream::abort() {
  end({}, false);
}

void ResumableStream::on_gone(std::function<void()> left) {
  const std::lock_guard lock(mutex_);
  left_ = std::move(left);
}

ApiResult<void> ResumableStream::attach(std::shared_ptr<Connection> client, std::uint64_t seen) {
  std::shared_ptr<Connection> former;
  {
    const std::lock_guard lock(mutex_);
    const auto refused = [](int status, std::string message) {
      return std::unexpected(make_error(status, std::move(message), "Last-Event-ID"));
    };
    const auto last = first_ + events_.size() - 1;
    if (seen + 1 < first_)
      return refused(410,
                     fmt::format("[stream] events from {} on are wanted, those from {} on are kept", seen + 1, first_));
    if (seen > last)
      return refused(400, fmt::format("[stream] event {} is said to be seen, {} there are so far", seen, last));
    former = std::move(client_);
    client_ = client;
    next_sent_ = seen + 1;
    unsent_bytes_ = 0;
    for (auto at = next_sent_; at <= last; ++at) unsent_bytes_ += events_[at - first_].size();
    client_->start_stream(head_);
    send();
  }
  if (former != nullptr) former->abort();
  watch(client);
  return {};
}

void ResumableStream::discard() {
  std::function<void()> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(left_);
  }
  if (left) left();
}

bool ResumableStream::sweep(std::chrono::steady_clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    send();
    if (is_over_) return now - over_since_ < kWindow;
    if (client_ != nullptr || now - alone_since_ < kWindow) return true;
  }
  discard();  // makes the job end and call finish() or abort()
  return true;
}

void StreamRegistry::add(const std::shared_ptr<ResumableStream>& stream) {
  const std::lock_guard lock(mutex_);
  Entry& entry = streams_[stream->id()];
  entry.stream = stream;
  count(entry, kOfStream);
}

ApiResult<std::shared_ptr<ResumableStream>> StreamRegistry::find(const std::string& id, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  if (const auto found = streams_.find(id); found != streams_.end() && found->second.stream->owner() == owner)
    return found->second.stream;
  if (const auto gone = dropped_.find(id); gone != dropped_.end() && gone->second.owner == owner)
    return std::unexpected(make_error(
        410, fmt::format("[stream] \"{}\" ended and was dropped since: the streams {} keep {} bytes at most, and "
                         "newer ones took its place",
                         id, gone->second.whose, gone->second.most)));
  return std::unexpected(make_error(404, fmt::format("[stream] there is no \"{}\": streams made with "
                                                     "stream_options.resumable are kept while they run and {} s after",
                                                     id.substr(0, 100), ResumableStream::kWindow.count())));
}

void StreamRegistry::sweep(std::chrono::steady_clock::time_point now) {
  Streams all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : streams_) all.push_back(entry.stream);
    std::erase_if(dropped_, [&](const auto& one) { return now - one.second.time > ResumableStream::kWindow; });
  }
  for (const auto& stream : all) {
    if (stream->sweep(now)) continue;
    const std::lock_guard lock(mutex_);
    erase(stream->id());
  }
}

void StreamRegistry::keeps(const ResumableStream& stream, std::size_t n_bytes, bool is_over) {
  Streams dropped;  // destroyed after the mutex is released
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(stream.id());
  if (it == streams_.end()) return;
  count(it->second, n_bytes + kOfStream);
  if (is_over && it->second.over_as == 0) {
    it->second.over_as = ++n_over_;
    over_[{stream.owner(), n_over_}] = stream.id();
  }
  dropped = make_room(stream.owner());
}

bool StreamRegistry::is_full(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const auto of_owner = by_owner_.find(owner);
  return n_bytes_ >= limits_.in_all || (of_owner != by_owner_.end() && of_owner->second >= limits_.per_owner);
}

void StreamRegistry::count(Entry& entry, std::size_t n_bytes) {
  const auto n_before = std::exchange(entry.n_bytes, n_bytes);
  n_bytes_ = n_bytes_ - n_before + n_bytes;
  auto& of_owner = by_owner_[entry.stream->owner()];
  of_owner = of_owner - n_before + n_bytes;
  if (of_owner == 0) by_owner_.erase(entry.stream->owner());
}

void StreamRegistry::erase(const std::string& id) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  count(it->second, 0);
  over_.erase({it->second.stream->owner(), it->second.over_as});
  streams_.erase(it);
}

// Drops finished streams until the limits are kept. `owner` is the tenant whose streams have just grown.
StreamRegistry::Streams StreamRegistry::make_room(const std::string& owner) {
  Streams dropped;
  const auto of_owner = [&] {
    const auto it = by_owner_.find(owner);
    return it == by_owner_.end() ? 0 : it->second;
  };
  while (of_owner() > limits_.per_owner && drop_oldest_of(owner, "of this tenant", limits_.per_owner, dropped)) {
  }
  while (n_bytes_ > limits_.in_all && !over_.empty()) {
    std::string most;
    for (const auto& [who, n] : by_owner_)
      if (const auto first = over_.lower_bound({who, 0}); first != over_.end() && first->first.first == who)
        if (most.empty() || n > by_owner_[most]) most = who;
    if (!drop_oldest_of(most, "of all tenants", limits_.in_all, dropped)) break;
  }
  return dropped;
}

// Drops the owner's oldest finished stream. Returns false if the owner has none.
bool StreamRegistry::drop_oldest_of(const std::string& owner, const char* whose, std::size_t most, Streams& dropped) {
  const auto oldest = over_.lower_bound({owner, 0});
  if (oldest == over_.end() || oldest->first.first != owner) return false;
  const auto id = oldest->second;
  dropped.push_back(streams_.at(id).stream);
  if (dropped_.size() < kMostDropped) dropped_[id] = {owner, std::chrono::steady_clock::now(), whose, most};
  erase(id);
  return true;
}

std::size_t StreamRegistry::size() {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

}  // namespace zinc_rt::server
