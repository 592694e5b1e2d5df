import { mask } from '../../domain/config/server-config.ts';
import { encode } from '../../domain/http/values.ts';
import { buildRequest, maskedSignature } from '../../domain/request/build-request.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import { ToolFailure } from '../../errors.ts';
import { type HostedServer, type HostedTool, unfillable } from '../hosted/hosted-server.ts';
import { type CredentialUse, requestFor, secretFor, tokensOf } from './credentials-of-call.ts';

/**
 * The exact request of a call with every credential masked; nothing is sent. `onSecret` gets the name of each secret that
 * fills it. @throws ToolFailure
 */
export function previewRequest(
  tool: HostedTool,
  prepared: Arguments,
  onSecret?: (name: string) => void,
): UpstreamRequest {
  if (tool.refusal !== undefined) throw unfillable(tool.refusal);
  const { credentials } = tool.request;
  const secret = (name: string) => {
    onSecret?.(name);
    return mask;
  };
  const request = buildRequest(tool.request, prepared, { tokens: credentials.map(() => mask), secret });
  const signed = credentials.filter(({ type }) => type === 'AwsSigV4').flatMap((one) => maskedSignature(one, mask));
  // The mask has characters that a URL encodes.
  return { ...request, path: request.path.replaceAll(encodedMask, mask), headers: [...request.headers, ...signed] };
}

const encodedMask = encode(mask);

/** The same, or undefined for a call that produces no request. */
export function findPreview(tool: HostedTool, prepared: Arguments | undefined): UpstreamRequest | undefined {
  if (!prepared) return undefined;
  try {
    return previewRequest(tool, prepared);
  } catch (error) {
    if (error instanceof ToolFailure) return undefined;
    throw error;
  }
}

/** A preview, and why the call would be refused instead of sent, in the words that the call itself would be answered with. */
export type Previewed = { request: UpstreamRequest; refused: string | undefined };

/** @throws ToolFailure for arguments that make no request */
export function previewCall(server: HostedServer, tool: HostedTool, prepared: Arguments): Previewed {
  const names = new Set<string>();
  const request = previewRequest(tool, prepared, (name) => names.add(name));
  return { request, refused: secretRefusal(server, tool, names) };
}

/** Why the secrets that these names and the credentials of a tool refer to may not be sent. */
function secretRefusal(server: HostedServer, tool: HostedTool, names: ReadonlySet<string>): string | undefined {
  const use: CredentialUse = { server, tool, sensitive: [], ownTokens: undefined, signing: undefined };
  const secret = (name: string) => secretFor(server, name, tool.request.url.origin);
  try {
    for (const name of names) secret(name);
    for (const one of tool.clientCredentials) requestFor(use, one);
    tokensOf(use, { token: undefined, secret, sent: [] });
    return undefined;
  } catch (error) {
    if (error instanceof ToolFailure) return error.message;
    throw error;
  }
}
