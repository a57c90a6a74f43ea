// A count with its noun, as in "1 photo" and "1,200 photos"; on every page.
"use strict";
const quantity = (count, noun, plural = `${noun}s`) => `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
