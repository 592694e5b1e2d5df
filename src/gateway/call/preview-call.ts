import { mask } from '../../domain/config/server-config.ts';
import { type Arguments, buildRequest, type UpstreamRequest } from '../../domain/request/request-template.ts';
import { ToolFailure } from '../../errors.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';

/** The exact request of a call with every credential masked; nothing is sent. @throws ToolFailure */
export function previewRequest(tool: HostedTool, prepared: Arguments): UpstreamRequest {
  return buildRequest(tool.request, prepared, { token: mask, secret: () => mask });
}

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
