import { mask } from '../../domain/config/server-config.ts';
import { encode } from '../../domain/http/values.ts';
import { buildRequest, maskedSignature } from '../../domain/request/build-request.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import { ToolFailure } from '../../errors.ts';
import { type HostedServer, type HostedTool, unfillable } from '../hosted/hosted-server.ts';
import { type CredentialUse, requestFor, secretFor, tokensOf } from './credentials-of-call.ts';

/**
 * Builds the exact request of a call with every credential masked, and sends nothing. `onSecret` receives the name of
 * each secret that the request contains. @throws ToolFailure
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
  // The mask has characters that are percent-encoded in a URL.
  return { ...request, path: request.path.replaceAll(encodedMask, mask), headers: [...request.headers, ...signed] };
}

const encodedMask = encode(mask);

/** Builds the masked request of a call. Returns undefined if the call produces no request. */
export function findPreview(tool: HostedTool, prepared: Arguments | undefined): UpstreamRequest | undefined {
  if (!prepared) return undefined;
  try {
    return previewRequest(tool, prepared);
  } catch (error) {
    if (error instanceof ToolFailure) return undefined;
    throw error;
  }
}

/** A preview, and the error message with which the call would be refused instead of sent. */
export type Previewed = { request: UpstreamRequest; refused: string | undefined };

/** Previews a call. @throws ToolFailure if the arguments produce no request */
export function previewCall(server: HostedServer, tool: HostedTool, prepared: Arguments): Previewed {
  const names = new Set<string>();
  const request = previewRequest(tool, prepared, (name) => names.add(name));
  return { request, refused: secretRefusal(server, tool, names) };
}

/** Returns the reason why the named secrets and the tool's credentials may not be sent, or undefined if they may. */
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
