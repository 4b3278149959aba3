#include "daemon/line.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>

#include "allocator/protocol/messages.hpp"
#include "allocator/protocol/socket.hpp"

namespace vramd {
namespace {

namespace interprocess = boost::interprocess;

// What mapped_region wants of something that can be mapped.
class Mappable {
 public:
  explicit Mappable(int fd) : fd_(fd) {}
  interprocess::mapping_handle_t get_mapping_handle() const {
    return interprocess::ipcdetail::mapping_handle_from_file_handle(fd_);
  }

 private:
  int fd_;
};

struct Ends {
  UniqueFd socket;
  interprocess::mapped_region page;

  Bytes idle(std::uint32_t device) const {
    const auto* shown = static_cast<const protocol::SessionPage*>(page.get_address());
    return device < protocol::kMaxDevices ? Bytes{__atomic_load_n(&shown->idle_bytes[device], __ATOMIC_RELAXED)} : Bytes{};
  }
};

// Its size can't be changed any more: else the session could make the daemon fault.
Result<UniqueFd> sealed_page() {
  UniqueFd fd(::memfd_create("vramd-session", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return failure(ErrorCode::system, "memfd_create", errno);
  if (::ftruncate(fd.get(), sizeof(protocol::SessionPage)) != 0) return failure(ErrorCode::system, "ftruncate", errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return failure(ErrorCode::system, "sealing a memfd", errno);
  return fd;
}

}  // namespace

Result<NewLine> make_line() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
    return failure(ErrorCode::system, "socketpair", errno);
  const auto ends = std::make_shared<Ends>();
  ends->socket = UniqueFd(pair[0]);
  NewLine made;
  made.session_socket = UniqueFd(pair[1]);
  auto page = sealed_page();
  if (!page) return tl::unexpected(page.error());
  made.page = std::move(*page);
  try {
    ends->page =
        interprocess::mapped_region(Mappable(made.page.get()), interprocess::read_only, 0, sizeof(protocol::SessionPage));
  } catch (const interprocess::interprocess_exception& error) {
    return failure(ErrorCode::system, "mapping a session's page", error.get_native_error());
  }
  made.line.recall = [ends](std::uint32_t request, std::uint32_t device, Bytes bytes) {
    auto message = protocol::make<protocol::Recall>(request);
    message.device = device;
    message.bytes = bytes.value;
    (void)protocol::send_message(ends->socket.get(), message);
  };
  made.line.idle = [ends](std::uint32_t device) { return ends->idle(device); };
  return made;
}

}  // namespace vramd
