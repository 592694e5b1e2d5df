import { hash } from 'node:crypto';
import type { Caller } from './caller.ts';

/** A digest of a caller's identity, the same in every process. All callers whom nothing identifies have one. */
export function callerDigest({ kind, keyId, id }: Caller): string {
  return hash('sha256', JSON.stringify([kind, keyId ?? null, id ?? null]), 'base64url');
}
