"""The reviewer's screen: lease, card, draft, submit, reveal, rating again; imported ratings.

``card`` alone decides what a reviewer sees."""
