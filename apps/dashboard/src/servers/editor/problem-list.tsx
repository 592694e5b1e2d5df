import { Alert, Anchor, List } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { toVisible } from '../../ui/text/visible.ts';
import { useEditor, useEditorState } from './model/editor-context.ts';
import { goToField } from './model/go-to-field.ts';

const maxShown = 20;

/** List of problems, each with a link to its field. */
export function ProblemList() {
  const { isReadOnly } = useEditor();
  const problems = useEditorState((state) => (state.isRevealed ? state.problems : []));
  const draftProblem = useEditorState((state) => (state.isRevealed ? state.draftProblem : undefined));
  if (isReadOnly || (problems.length === 0 && draftProblem === undefined)) return null;
  return (
    <Alert color="red" icon={<IconAlertTriangle size={18} />} title="Fix before saving">
      <List size="sm" spacing={2} listStyleType="none">
        {draftProblem && <List.Item>Invalid JSON: {draftProblem}</List.Item>}
        {problems.slice(0, maxShown).map(({ path, message }) => (
          <List.Item key={path + message}>
            {path && (
              <Anchor component="button" type="button" className="th-mono" onClick={() => goToField(path)}>
                {toVisible(path)}
              </Anchor>
            )}
            {path && ': '}
            {toVisible(message)}
          </List.Item>
        ))}
        {problems.length > maxShown && <List.Item>and {problems.length - maxShown} more</List.Item>}
      </List>
    </Alert>
  );
}
