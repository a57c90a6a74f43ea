"""The figures of the papers: plain numbers in, a matplotlib figure out; one file for each kind.

    figure = grouped_bars({"starter": [Bar("Species", 0.31, 0.27, 0.35, count=22), …]}, "AP@50 (norm=min-k)")
    save(figure, "categories")      # categories.svg and categories.png
    page += as_svg(figure)          # for a page of HTML

matplotlib comes with the extra [plots] and is imported when a figure is drawn.
"""
