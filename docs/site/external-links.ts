import { readChapters } from './pages.ts';

/**
 * Requests every external URL that the pages link to, one by one, and prints those that do not return a page. Not a
 * test, because external sites change independently.
 */
const limitMs = 15_000;
const addresses = new Map<string, string>();
for (const { source, text } of readChapters().flatMap(({ pages }) => pages)) {
  for (const [, address = ''] of text.matchAll(/\]\((https?:\/\/[^\s)]+)\)/g)) addresses.set(address, source);
}
for (const [address, source] of addresses) {
  const said = await fetch(address, { signal: AbortSignal.timeout(limitMs) }).then(
    ({ status }) => (status < 400 ? undefined : `status ${status}`),
    (error: Error) => error.message,
  );
  if (said !== undefined) process.stdout.write(`${source}: ${address}: ${said}\n`);
}
process.stdout.write(`${addresses.size} URLs checked\n`);
