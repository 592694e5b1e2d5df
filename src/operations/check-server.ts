import { z } from 'zod';
import { accessKinds, accessOf } from '../domain/access.ts';
import { serverConfigSchema } from '../domain/server-config.ts';
import { judge } from './judge-config.ts';
import { operation } from './operation.ts';
import { firstWarnings, problemsShape, warningsShape } from './shapes.ts';

export const checkMcpServer = operation({
  name: 'checkMcpServer',
  summary: 'Judge a configuration without storing it',
  description: 'Returns every problem and every warning that creating or updating would report.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: serverConfigSchema,
  judgesInput: true,
  output: z.object({
    valid: z.boolean(),
    problems: problemsShape,
    warnings: warningsShape,
    access: z.enum(accessKinds).optional(),
  }),
  async run(context, input) {
    const { config, problems, warnings } = await judge(context, input, []);
    if (!config) return { valid: false, problems: [...problems], warnings: [] };
    return { valid: true, problems: [], warnings: firstWarnings(warnings), access: accessOf(config) };
  },
});
