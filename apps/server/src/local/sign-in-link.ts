import { randomBytes } from 'node:crypto';
import { hashSecret, newSecret } from '@toolhost/credentials/ids';
import { buildSignInLink } from '../routes.ts';
import type { Db } from '../store/db.ts';
import { insertSignInLink } from '../store/people/sign-in-links.ts';

export const signInLinkLifetimeMs = 15 * 60_000;

/** Database, and its time in epoch ms. */
export type SignInLinkStore = { db: Db; now: () => number };

/** Creates a link that signs the person of local mode in once. Only its hash is stored. */
export async function createSignInLink({ db, now }: SignInLinkStore, baseUrl: string): Promise<string> {
  const secret = newSecret(randomBytes);
  await insertSignInLink(db, hashSecret(secret), now() + signInLinkLifetimeMs);
  return buildSignInLink(baseUrl, secret);
}
