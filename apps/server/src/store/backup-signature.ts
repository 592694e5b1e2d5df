import type { Hash } from 'node:crypto';
import { z } from 'zod';
import type { Keyring } from './sealing/sealing.ts';

/** Last line of a backup. Authenticates all previous lines with the master key that has this id. */
export const signatureLine = z.strictObject({ mac: z.string(), key: z.string().regex(/^[0-9a-f]{8}$/) });
export type SignatureLine = z.infer<typeof signatureLine>;

/** `unknown_key`: the master key that signed the backup is not configured here, so the backup cannot be verified. */
export type SignatureState = 'valid' | 'changed' | 'unknown_key' | 'missing';

const purpose = 'backup';

/** @param lines SHA-256 of all lines */
export function signLines(lines: Hash, keyring: Keyring): SignatureLine {
  return { mac: keyring.mac(lines.digest('base64url'), purpose), key: keyring.keyIds[0] };
}

/** @param lines SHA-256 of all lines before the signature */
export function verifyLines(
  lines: Hash,
  signature: SignatureLine | undefined,
  keyring: Keyring | undefined,
): SignatureState {
  if (!signature) return 'missing';
  if (!keyring?.keyIds.includes(signature.key)) return 'unknown_key';
  return keyring.verifyMac(signature.mac, lines.digest('base64url'), purpose) ? 'valid' : 'changed';
}
