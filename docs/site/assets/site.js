/* The search, and the list of pages, which is closed on a narrow screen. */
addEventListener('DOMContentLoaded', () => {
  new PagefindUI({
    element: '#search',
    showSubResults: true,
    showImages: false,
    pageSize: 8,
    translations: { placeholder: 'Search' },
  });
  document.querySelector('#search input').setAttribute('aria-label', 'Search the documentation');
  const pages = document.getElementById('pages');
  const narrow = matchMedia('(max-width: 60rem)');
  const fit = () => {
    pages.open = !narrow.matches;
  };
  narrow.addEventListener('change', fit);
  fit();
  document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' });
});
