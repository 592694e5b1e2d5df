import { ToolFailure } from '@toolhost/errors/errors';
import { percentEncode } from '@toolhost/tool-config/http/values';
import { getPersonalNames } from '@toolhost/tool-config/personal-values';
import { buildMaskedSignatureHeaders, buildRequest } from '@toolhost/tool-config/request/build-request';
import type { UpstreamRequest } from '@toolhost/tool-config/request/upstream-request';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import { mask } from '@toolhost/tool-config/server-config';
import { type HostedServer, type HostedTool, toConfigFailure } from '../hosted/hosted-server.ts';
import { type CredentialUse, getTokens, secretFor, tokenRequestFor } from './call-credentials.ts';

/**
 * Builds the exact request of a call with every credential masked, and sends nothing. `onSecret` receives the name of
 * each secret that the request contains. @throws ToolFailure
 */
export function previewRequest(tool: HostedTool, args: Arguments, onSecret?: (name: string) => void): UpstreamRequest {
  if (tool.configError !== undefined) throw toConfigFailure(tool.configError);
  const { credentials } = tool.request;
  const maskSecret = (name: string) => {
    onSecret?.(name);
    return mask;
  };
  const masked = { tokens: credentials.map(() => mask), secret: maskSecret, isPreview: true };
  const request = buildRequest(tool.request, args, masked);
  const signatureHeaders = credentials
    .filter(({ type }) => type === 'AwsSigV4')
    .flatMap((credential) => buildMaskedSignatureHeaders(credential, mask));
  // The mask has characters that are percent-encoded in a URL.
  return {
    ...request,
    path: request.path.replaceAll(encodedMask, mask),
    headers: [...request.headers, ...signatureHeaders],
  };
}

const encodedMask = percentEncode(mask);

/** Builds the masked request of a call. Returns undefined if the call produces no request. */
export function findPreview(tool: HostedTool, args: Arguments | undefined): UpstreamRequest | undefined {
  if (!args) return undefined;
  try {
    return previewRequest(tool, args);
  } catch (error) {
    if (error instanceof ToolFailure) return undefined;
    throw error;
  }
}

/** A preview, and the error message with which the call would be refused instead of sent. */
export type CallPreview = { request: UpstreamRequest; refusal: string | undefined };

/** Previews a call. @throws ToolFailure if the arguments produce no request */
export function previewCall(server: HostedServer, tool: HostedTool, args: Arguments): CallPreview {
  const names = new Set<string>();
  const request = previewRequest(tool, args, (name) => names.add(name));
  return { request, refusal: getSecretRefusal(server, tool, names) };
}

/** Returns the reason why the named secrets and the tool's credentials may not be sent, or undefined if they may. */
function getSecretRefusal(server: HostedServer, tool: HostedTool, names: ReadonlySet<string>): string | undefined {
  const credentialUse: CredentialUse = { server, tool, sensitive: [], serviceTokens: undefined, signing: undefined };
  const personalNames = getPersonalNames(server.config);
  // A preview belongs to no person, so it does not say whether the caller has entered the value.
  const getSecret = (name: string) =>
    personalNames.has(name) ? mask : secretFor(server, name, tool.request.url.origin);
  try {
    for (const name of names) getSecret(name);
    for (const credential of tool.clientCredentials) tokenRequestFor(credentialUse, credential);
    getTokens(credentialUse, { token: undefined, getSecret, sent: [] });
    return undefined;
  } catch (error) {
    if (error instanceof ToolFailure) return error.message;
    throw error;
  }
}
