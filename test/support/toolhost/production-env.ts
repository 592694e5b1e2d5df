import { randomBytes } from 'node:crypto';

/** Builds the environment of a public service that listens on this machine only. */
export function buildProductionEnv(more: Record<string, string> = {}): Record<string, string> {
  return {
    BASE_URL: 'https://tools.example.com',
    HOST: '127.0.0.1',
    MASTER_KEY: randomBytes(32).toString('base64'),
    OIDC_ISSUER: 'https://id.example.com',
    OIDC_CLIENT_ID: 'toolhost',
    OIDC_CLIENT_SECRET: 'of-the-client',
    ...more,
  };
}
