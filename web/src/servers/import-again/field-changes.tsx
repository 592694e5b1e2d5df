import { Box, Text } from '@mantine/core';
import type { ImportAgainPlan } from '../../answers.ts';
import { visible } from '../../ui/text/visible.ts';
import { MoreOf } from './more-of.tsx';

export type FieldChange = ImportAgainPlan['server'][number];
type ToolChanges = ImportAgainPlan['changed'];

type Props = { changes: ToolChanges; count: number; of: string; signs: Signs };

/** The words for the two values of a change. */
export type Signs = { before: string; after: string };

/** Tools with the fields that change or differ, a part at a time. */
export function ChangedTools({ changes, count, of, signs }: Props) {
  return (
    <MoreOf entries={changes} count={count} of={of}>
      {({ tool, operation, fields }) => (
        <Box key={tool} className="th-pick-group">
          <Text size="sm">
            <span className="th-mono">{visible(tool)}</span>{' '}
            <Text span size="xs" c="dimmed">
              {visible(operation)}
            </Text>
          </Text>
          <FieldChanges changes={fields} signs={signs} />
        </Box>
      )}
    </MoreOf>
  );
}

/** Fields with their values on both sides. */
export function FieldChanges({ changes, signs }: { changes: readonly FieldChange[]; signs: Signs }) {
  return (
    <div className="th-changes">
      {changes.map(({ path, before, after }) => (
        <div key={path} className="th-change">
          <Text size="sm" fw={600} className="th-mono">
            {visible(path)}
          </Text>
          <Side kind="removed" sign={signs.before} value={before} />
          <Side kind="added" sign={signs.after} value={after} />
        </div>
      ))}
    </div>
  );
}

/** A value on one side of a change. */
export function Side({ kind, sign, value }: { kind: 'removed' | 'added'; sign: string; value: string | undefined }) {
  return (
    <div className="th-side" data-kind={kind}>
      <span className="th-side-sign">{sign}</span>
      <span>{value === undefined ? <em>nothing</em> : visible(value)}</span>
    </div>
  );
}
