// One accepted socket: reads packets fairly, writes answers, keeps a bounded queue for a peer that does not
// read. Loop thread only. Kept alive by its own pending operations; close() ends them.
#pragma once

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "allocator/base/unique_fd.hpp"

namespace vramd {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Owner {
    // A packet. Returns why the connection is to be dropped, or null.
    std::function<const char*(const void* packet, std::size_t size)> packet;
    // Whether reading should stop until resume().
    std::function<bool()> saturated;
    // The connection is over; called once, from the loop. `reason`: null when the peer closed.
    std::function<void(const char* reason)> closed;
  };

  Connection(boost::asio::io_context& loop, UniqueFd socket);

  void start(Owner owner);
  void send(const void* packet, std::size_t size, int fd);
  void resume();  // reads again after saturation
  // Reads what has already arrived, whatever the saturation. For a peer that has died: its goodbye may be in
  // there.
  void drain();
  void close(const char* reason);
  bool closed() const { return closed_; }
  int native() { return socket_.native_handle(); }

 private:
  struct Queued {
    std::vector<unsigned char> packet;
    UniqueFd fd;
  };
  enum class Read { more, nothing, over };

  void wait_readable();
  void read_some();
  Read read_one();
  bool try_send(const void* packet, std::size_t size, int fd, int& error);
  void flush();
  void wait_writable(int error);
  void expect_progress();

  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer retry_;
  boost::asio::steady_timer deaf_;  // runs while answers wait, from the last one that went out
  Owner owner_;
  std::deque<Queued> queue_;
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace vramd
