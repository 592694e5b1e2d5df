import { base62 } from './credentials/api-key.ts';

/** A source of random bytes; handed in, so that nothing here decides where randomness comes from. */
export type Random = (bytes: number) => Uint8Array;

/** An identifier that cannot be guessed: prefix and 128 random bits. */
export function newId(random: Random, prefix: string): string {
  return `${prefix}_${base62(random(16), 22)}`;
}
