import type { ToolDefinition } from '@toolhost/tool-config/built-in-tools';

/** APIs through which models are called. */
export const modelKinds = ['anthropic', 'openai', 'gemini'] as const;
export type ModelKind = (typeof modelKinds)[number];

/** Maximum number of model responses per question of a person. */
export const maxModelSteps = 20;

/** Default URL of each API. */
export const defaultModelUrls: Readonly<Record<ModelKind, string>> = {
  anthropic: 'https://api.anthropic.com/v1',
  openai: 'https://api.openai.com/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta',
};

/** A model and its API key; local models need none. */
export type Model = { kind: ModelKind; url: string; name: string; key: string | undefined };

/** A part of a model's response. `meta` is text from its host, which is sent back unchanged. */
export type ModelPart =
  | { type: 'text' | 'thought'; text: string; meta?: string | undefined }
  | {
      type: 'call';
      id: string;
      tool: string;
      /** JSON, as the model wrote it. */
      arguments: string;
      meta?: string | undefined;
    };

export type ModelMessage =
  | { role: 'user'; text: string }
  | { role: 'model'; parts: readonly ModelPart[] }
  | {
      role: 'tools';
      results: readonly { id: string; tool: string; text: string; is_error?: boolean | undefined }[];
    };

/** A question for a model. */
export type ModelQuestion = {
  workspaceId: string;
  model: Model;
  instructions: string | undefined;
  tools: readonly ToolDefinition[];
  messages: readonly ModelMessage[];
  onProgress: (progress: ModelProgress) => void;
  signal: AbortSignal | undefined;
};

/** The next text of a response, or the tool whose arguments are being written. */
export type ModelProgress = { text: string } | { thought: string } | { tool: string };

/** Reasons why a model ended its response. */
export const modelFinishReasons = ['stop', 'tool-calls', 'length', 'content-filter', 'error', 'other'] as const;

/** The model of a question, as stored in call records. */
export type RecordedModel = { name: string; input_tokens?: number | undefined; output_tokens?: number | undefined };

export type ModelReply = {
  parts: ModelPart[];
  finishReason: (typeof modelFinishReasons)[number];
  usage: { input: number | undefined; output: number | undefined };
};
