#include "server/resumable_stream.h"

#include <fmt/format.h>

#include <vector>

namespace zinc_rt::server {
namespace {

constexpr std::string_view kEnd = "\n\n";  // ends an event

}  // namespace

ResumableStream::ResumableStream(StreamShelf& shelf, std::string id, std::string owner,
                                 std::shared_ptr<Connection> client)
    : shelf_(shelf), id_(std::move(id)), owner_(std::move(owner)), client_(std::move(client)) {}

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
    shelf_.add(shared_from_this());  // added before the client learns its name
    client->start_stream(head_);
  }
  watch(client);
}

// Asks to be called when this client leaves. REQUIRES: the mutex is not held, since a client that has left already
// calls back at once.
void ResumableStream::watch(const std::shared_ptr<Connection>& client) {
  client->on_gone([weak = weak_from_this(), client = client.get()] {
    if (const auto self = weak.lock()) self->client_left(client);
  });
}

void ResumableStream::client_left(const Connection* client) {
  std::shared_ptr<Connection> last;  // destroyed without the mutex held
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
  while (kept_bytes_ > kMostKept && first_ < next_sent_) {
    kept_bytes_ -= events_.front().size();
    events_.pop_front();
    ++first_;
  }
}

// Sends events to the client, as many as it takes; of a stream that has ended, all the rest.
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
  if (unsent_bytes_ > (client_ != nullptr ? kMostUnsent : kMostKept)) return false;
  keep(piece);
  send();
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
  discard();  // the job ends, and then calls finish() or abort()
  return true;
}

void StreamShelf::add(const std::shared_ptr<ResumableStream>& stream) {
  const std::lock_guard lock(mutex_);
  streams_[stream->id()] = stream;
}

std::shared_ptr<ResumableStream> StreamShelf::find(const std::string& id, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  return found == streams_.end() || found->second->owner() != owner ? nullptr : found->second;
}

void StreamShelf::sweep(std::chrono::steady_clock::time_point now) {
  std::vector<std::shared_ptr<ResumableStream>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, stream] : streams_) all.push_back(stream);
  }
  for (const auto& stream : all) {
    if (stream->sweep(now)) continue;
    const std::lock_guard lock(mutex_);
    streams_.erase(stream->id());
  }
}

std::size_t StreamShelf::size() {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

}  // namespace zinc_rt::server
