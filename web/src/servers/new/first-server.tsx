import { IconServer2 } from '@tabler/icons-react';
import { useCanEdit } from '../../frame/session.ts';
import { Empty } from '../../ui/states/empty.tsx';
import { StartChoices } from './start-choices.tsx';

/** A workspace without servers: the ways to the first server. */
export function FirstServer() {
  const canEdit = useCanEdit();
  return (
    <div className="th-card">
      <Empty
        icon={<IconServer2 size={24} />}
        title="No servers yet"
        text={
          canEdit
            ? 'Your first server takes about a minute: choose how to begin.'
            : 'Nobody has made a server in this workspace. Editors and owners can.'
        }
      />
      {canEdit && <StartChoices />}
    </div>
  );
}
