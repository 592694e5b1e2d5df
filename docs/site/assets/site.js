import { find } from './search.js';

const root = new URL('..', import.meta.url);
const field = document.querySelector('#search input');
const results = document.querySelector('#results');
let index;

/** Fetches the index on the first search. */
const readIndex = async () => (await fetch(new URL('assets/search-index.json', root))).json();

function resultOf({ href, page, heading, excerpt }) {
  const link = document.createElement('a');
  link.href = new URL(href, root).href;
  const title = document.createElement('strong');
  title.textContent = heading === page ? page : `${page}: ${heading}`;
  const text = document.createElement('span');
  text.textContent = excerpt;
  link.append(title, text);
  const item = document.createElement('li');
  item.append(link);
  return item;
}

async function show() {
  index ??= readIndex();
  const query = field.value.trim();
  const found = query === '' ? [] : find(await index, query, 10);
  if (query !== field.value.trim()) return;
  const nothing = document.createElement('li');
  nothing.textContent = 'No page has these words.';
  results.replaceChildren(...(found.length > 0 ? found.map(resultOf) : [nothing]));
  results.hidden = query === '';
}

field.addEventListener('input', show);
field.form.addEventListener('submit', (event) => {
  event.preventDefault();
  results.querySelector('a')?.click();
});
results.addEventListener('click', () => {
  results.hidden = true;
});
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  results.hidden = true;
});

/* The list of pages is closed on a narrow screen. */
const pages = document.getElementById('pages');
const narrow = matchMedia('(max-width: 60rem)');
const fit = () => {
  pages.open = !narrow.matches;
};
narrow.addEventListener('change', fit);
fit();
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' });
