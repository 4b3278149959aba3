// Units as types: a size is never mixed up with an address, an index or an id.
#pragma once

#include <compare>
#include <cstdint>

namespace vramd {

// A size or a count of bytes. Arithmetic is unsigned; `a - b` requires a >= b, saturating_sub() does not.
struct Bytes {
  std::uint64_t value = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return {a.value * n}; }
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.value / b.value; }
};

constexpr Bytes saturating_sub(Bytes a, Bytes b) { return a > b ? a - b : Bytes{0}; }

// Rounds up to a multiple of `step`. Returns {0} when the result does not fit 64 bits.
constexpr Bytes round_up(Bytes size, Bytes step) {
  const std::uint64_t rest = size.value % step.value;
  if (rest == 0) return size;
  const std::uint64_t add = step.value - rest;
  return size.value > UINT64_MAX - add ? Bytes{0} : Bytes{size.value + add};
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30}; }
}  // namespace literals

// A time span or a point on CLOCK_MONOTONIC, in nanoseconds.
struct Nanos {
  std::int64_t value = 0;

  constexpr auto operator<=>(const Nanos&) const = default;
  friend constexpr Nanos operator+(Nanos a, Nanos b) { return {a.value + b.value}; }
  friend constexpr Nanos operator-(Nanos a, Nanos b) { return {a.value - b.value}; }
};

constexpr Nanos milliseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Nanos seconds(std::int64_t n) { return {n * 1'000'000'000}; }

// An address that a GPU understands. 0 is "none".
enum class DevicePtr : std::uint64_t {};

constexpr std::uint64_t address(DevicePtr p) { return static_cast<std::uint64_t>(p); }
constexpr DevicePtr operator+(DevicePtr p, Bytes n) { return DevicePtr{address(p) + n.value}; }
constexpr Bytes operator-(DevicePtr a, DevicePtr b) { return {address(a) - address(b)}; }

// A chunk's id in the daemon's ledger. Never reused while the daemon lives; 0 is "none" (a chunk of the local source).
enum class ChunkId : std::uint64_t {};
// A session's id in the daemon. Never reused while the daemon lives; 0 is "none".
enum class SessionId : std::uint64_t {};

}  // namespace vramd
