import { readUrl } from '../../domain/http/read-url.ts';
import { normalised } from '../../domain/normalised.ts';
import { isSlug, reservedSlugs } from '../../domain/slug.ts';

/** Clients put the slug before the name of each tool, and take 60 to 64 characters of both. */
const longest = 24;

/** Words that say nothing about an API, as long as other words are left. */
const generic = new Set(
  'a an and api apis docs documentation for http https json of official openapi preview public reference rest restful service spec specification specs swagger the v1 v2 v3 web'.split(
    ' ',
  ),
);

/** A short slug for a server: the words of its name that say something, or else its host. */
export function slugOf(name: string, address: string | undefined): string {
  const isHost = /^[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$/i.test(name);
  const words = isHost ? [] : wordsOf(name).filter((word) => !generic.has(word));
  const host = hostWord(isHost ? `https://${name}` : address);
  const slug = joined(words.length > 0 ? words : host === undefined ? wordsOf(name) : [host]);
  const whole = slug.length < 3 || reservedSlugs.has(slug) ? `${slug === '' ? 'imported' : slug}-api` : slug;
  return isSlug(whole) ? whole : 'imported-api';
}

function wordsOf(name: string): string[] {
  return normalised(name, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/['’]s\b/g, '')
    .replaceAll(/[^a-z0-9]+/g, ' ')
    .split(' ')
    .filter((word) => word !== '');
}

/** As many whole words as fit. */
function joined(words: readonly string[]): string {
  let slug = (words[0] ?? '').slice(0, longest);
  for (const word of words.slice(1)) {
    if (`${slug}-${word}`.length > longest) break;
    slug = `${slug}-${word}`;
  }
  return slug;
}

/** The word of a host that names its owner, such as `sentry` of `https://us.sentry.io`. */
function hostWord(address: string | undefined): string | undefined {
  const labels = (address === undefined ? undefined : readUrl(address))?.hostname.split('.') ?? [];
  const word = labels.at(-2);
  return word !== undefined && /[a-z]/.test(word) && labels.length <= 4
    ? word.replaceAll(/[^a-z0-9]+/g, '-')
    : undefined;
}
