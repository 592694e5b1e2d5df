import { mask } from '../../domain/config/server-config.ts';
import { encode } from '../../domain/http/percent-encoding.ts';
import { buildRequest } from '../../domain/request/build-request.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { maskedSignature } from '../../domain/request/sent-credentials.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import { ToolFailure } from '../../errors.ts';
import { refuseUnfillable } from '../hosted/filled-tools.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';

/** The exact request of a call with every credential masked; nothing is sent. @throws ToolFailure */
export function previewRequest(tool: HostedTool, prepared: Arguments): UpstreamRequest {
  refuseUnfillable(tool);
  const { credentials } = tool.request;
  const request = buildRequest(tool.request, prepared, { tokens: credentials.map(() => mask), secret: () => mask });
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
