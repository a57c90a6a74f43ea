"""Named lists of photos in the browser and in the API: made, joined, shown by a link, taken along."""
