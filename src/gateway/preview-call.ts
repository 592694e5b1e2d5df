import { type Arguments, buildRequest, type UpstreamRequest } from '../domain/request-template.ts';
import { mask } from '../domain/server-config.ts';
import { ToolFailure } from '../errors.ts';
import type { HostedTool } from './hosted-server.ts';

/** The arguments of a call, with the tool's defaults where the caller gave none. */
export function withFallbacks(tool: HostedTool, given: Arguments): Arguments {
  const missing = tool.fallbacks.filter(([name]) => !Object.hasOwn(given, name));
  return missing.length === 0 ? given : { ...given, ...Object.fromEntries(missing) };
}

/** The exact request of a call with every credential masked; nothing is sent. @throws ToolFailure */
export function previewCall(tool: HostedTool, args: Arguments): UpstreamRequest {
  const filled = withFallbacks(tool, args);
  tool.check(filled);
  return buildRequest(tool.request, filled, { token: mask, secret: () => mask });
}

/** The same, or undefined for a call that becomes no request. */
export function findPreview(tool: HostedTool, args: Arguments): UpstreamRequest | undefined {
  try {
    return previewCall(tool, args);
  } catch (error) {
    if (error instanceof ToolFailure) return undefined;
    throw error;
  }
}
