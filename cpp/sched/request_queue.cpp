#include "sched/request_queue.h"

namespace zinc_rt::sched {

RequestQueue::Queue& RequestQueue::queue_of(const Request& request) {
  while (queues_.size() <= request.params.tenant) queues_.emplace_back();
  return queues_[request.params.tenant][static_cast<std::size_t>(request.params.qos)];
}

void RequestQueue::push(Request& request, Micros now) {
  Queue& queue = queue_of(request);
  Request* before = queue.last;
  while (before != nullptr && before->order > request.order) before = before->previous;
  request.previous = before;
  request.next = before != nullptr ? before->next : queue.first;
  (before != nullptr ? before->next : queue.first) = &request;
  (request.next != nullptr ? request.next->previous : queue.last) = &request;
  request.is_waiting = true;
  request.queued_at = now;
  ++size_;
}

void RequestQueue::remove(Request& request, Micros now) {
  Queue& queue = queue_of(request);
  (request.previous != nullptr ? request.previous->next : queue.first) = request.next;
  (request.next != nullptr ? request.next->previous : queue.last) = request.previous;
  request.previous = request.next = nullptr;
  request.waited += now - request.queued_at;
  request.is_waiting = false;
  --size_;
}

}  // namespace zinc_rt::sched
