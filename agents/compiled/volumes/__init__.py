"""The volumes of a site: claims, what is behind them, and which nodes can have them."""
