// An intrusive ordered set: no allocation, no exceptions, O(log n) expected. Not thread-safe.
// A treap: a binary search tree by key that is a heap by a pseudo-random priority (Seidel and Aragon, "Randomized Search
// Trees", 1996). The node carries its links in a Hook member, so that one node can be in several sets.
#pragma once

#include <cstdint>

namespace vramd {

template <class Node>
struct TreapHook {
  Node* left = nullptr;
  Node* right = nullptr;
  std::uint64_t priority = 0;
};

// Less is a type with static bool less(const Node&, const Node&), a strict total order over the nodes of the set.
template <class Node, TreapHook<Node> Node::*kHook, class Less>
class Treap {
 public:
  bool empty() const { return root_ == nullptr; }

  // The node must not be in the set, and its key must not change while it is.
  void insert(Node& node) {
    TreapHook<Node>& hook = node.*kHook;
    hook.priority = next_priority();
    Node** link = &root_;
    while (*link != nullptr && ((*link)->*kHook).priority >= hook.priority) {
      link = Less::less(node, **link) ? &((*link)->*kHook).left : &((*link)->*kHook).right;
    }
    split(*link, node, &hook.left, &hook.right);
    *link = &node;
  }

  // The node must be in the set.
  void erase(Node& node) {
    Node** link = &root_;
    while (*link != &node) {
      link = Less::less(node, **link) ? &((*link)->*kHook).left : &((*link)->*kHook).right;
    }
    *link = merge((node.*kHook).left, (node.*kHook).right);
    node.*kHook = {};
  }

  // The first node for which `before(node)` is false; the nodes for which it is true must come first in the order.
  template <class Before>
  Node* first_not(Before before) const {
    Node* best = nullptr;
    for (Node* node = root_; node != nullptr;) {
      if (before(*node)) {
        node = (node->*kHook).right;
      } else {
        best = node;
        node = (node->*kHook).left;
      }
    }
    return best;
  }

  // The last node for which `before(node)` is true.
  template <class Before>
  Node* last(Before before) const {
    Node* best = nullptr;
    for (Node* node = root_; node != nullptr;) {
      if (before(*node)) {
        best = node;
        node = (node->*kHook).right;
      } else {
        node = (node->*kHook).left;
      }
    }
    return best;
  }

  Node* first() const {
    return first_not([](const Node&) { return false; });
  }

 private:
  std::uint64_t next_priority() {  // xorshift64 (Marsaglia, 2003)
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  static void split(Node* tree, const Node& key, Node** below, Node** above) {
    while (tree != nullptr) {
      TreapHook<Node>& hook = tree->*kHook;
      if (Less::less(*tree, key)) {
        *below = tree;
        below = &hook.right;
        tree = hook.right;
      } else {
        *above = tree;
        above = &hook.left;
        tree = hook.left;
      }
    }
    *below = nullptr;
    *above = nullptr;
  }

  static Node* merge(Node* below, Node* above) {
    Node* tree = nullptr;
    Node** link = &tree;
    while (below != nullptr && above != nullptr) {
      if ((below->*kHook).priority > (above->*kHook).priority) {
        *link = below;
        link = &(below->*kHook).right;
        below = *link;
      } else {
        *link = above;
        link = &(above->*kHook).left;
        above = *link;
      }
    }
    *link = below != nullptr ? below : above;
    return tree;
  }

  Node* root_ = nullptr;
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

}  // namespace vramd
