import { readChapters } from './pages.ts';

/**
 * Requests every external URL that the pages link to, one by one, and prints those that do not return a page. Not a
 * test, because external sites change independently.
 */
const limitMs = 15_000;
const urls = new Map<string, string>();
for (const { source, text } of readChapters().flatMap(({ pages }) => pages)) {
  for (const [, url = ''] of text.matchAll(/\]\((https?:\/\/[^\s)]+)\)/g)) urls.set(url, source);
}
for (const [url, source] of urls) {
  const failure = await fetch(url, { signal: AbortSignal.timeout(limitMs) }).then(
    ({ status }) => (status < 400 ? undefined : `status ${status}`),
    (error: Error) => error.message,
  );
  if (failure !== undefined) process.stdout.write(`${source}: ${url}: ${failure}\n`);
}
process.stdout.write(`${urls.size} URLs checked\n`);
