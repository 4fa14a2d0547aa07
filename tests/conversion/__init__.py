"""Scripts that bring public data sets into the shapes the product imports; the data itself is never copied here."""
