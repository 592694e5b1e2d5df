import { createHmac } from 'node:crypto';
import type { HttpClient } from './http-client.ts';

/** Where a webhook is sent, and the secret that signs it: `whsec_` and base64. */
export type WebhookTarget = { url: string; secret: string };

export type WebhookMessage = {
  workspaceId: string;
  /** The same at each attempt, so that a receiver can tell. */
  id: string;
  body: string;
  /** Epoch ms. */
  at: number;
};

/** Prefix of a secret, as Standard Webhooks has it. */
export const webhookSecretPrefix = 'whsec_';

const timeoutMs = 10_000;
/** The answer is not read; a longer one fails. */
const limitBytes = 64 * 1024;

/**
 * Sends a webhook, signed as Standard Webhooks 1.0.0 says. Gives the status of the answer.
 * @throws OutboundError
 */
export async function sendWebhook(
  http: Pick<HttpClient, 'send'>,
  { url, secret }: WebhookTarget,
  { workspaceId, id, body, at }: WebhookMessage,
  userAgent: string,
): Promise<number> {
  const target = new URL(url);
  const seconds = String(Math.floor(at / 1000));
  const key = Buffer.from(secret.slice(webhookSecretPrefix.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': userAgent,
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${signature}`,
  };
  const { status } = await http.send({
    workspaceId,
    origin: target.origin,
    credentialHash: undefined,
    path: target.pathname + target.search,
    method: 'POST',
    headers: Object.entries(headers).flat(),
    body,
    timeoutMs,
    limitBytes,
  });
  return status;
}
