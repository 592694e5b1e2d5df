import { z } from 'zod';
import { AppError } from '../errors.ts';
import { findKeyLimits, updateKeyLimits as storeKeyLimits } from '../store/api-keys.ts';
import { recordChange } from '../store/changes/changes.ts';
import { changedLimits, fieldsOf, isSameLimits, keyLimitInputs, keyLimitsFrom, limitInputs } from './limit-fields.ts';
import { operation } from './operation.ts';
import { isUnchanged, unchangedShape } from './shapes.ts';

const { calls_per_second, calls_per_minute, calls_per_day } = limitInputs;

const setKeyLimits = operation({
  name: 'setKeyLimits',
  summary: 'Set or remove what an API key is limited to',
  description: 'What is absent stays; null removes a limit. It counts in every process within two seconds.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    id: z.string().max(100).describe('Id of the key, key_…'),
    calls_per_second,
    calls_per_minute,
    calls_per_day,
  }),
  output: z.object({ id: z.string(), limits: z.object(keyLimitInputs), unchanged: unchangedShape }),
  async run(context, { id, ...input }) {
    const { db, actor } = context;
    const before = await findKeyLimits(db, actor.workspaceId, id);
    if (!before) throw new AppError('notFound', 'there is no such key in this workspace, or it is revoked');
    const limits = keyLimitsFrom(fieldsOf(changedLimits(before, input)));
    if (isSameLimits(before, limits ?? {})) return { id, limits: fieldsOf(before), unchanged: true as const };
    await storeKeyLimits(db, actor.workspaceId, id, limits);
    await recordChange(db, context, 'key', id);
    return { id, limits: fieldsOf(limits ?? {}) };
  },
  audit: ({ id, ...limits }) => ({ target: id, detail: limits }),
  isUnchanged,
});

export const keyLimitOperations = { setKeyLimits };
