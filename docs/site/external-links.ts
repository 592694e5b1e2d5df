import { readChapters } from './pages.ts';

/**
 * Asks every external address that the pages link to, one after the other, and prints those that do not answer with a
 * page. Not a test: the internet changes by itself.
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
process.stdout.write(`${addresses.size} addresses asked\n`);
