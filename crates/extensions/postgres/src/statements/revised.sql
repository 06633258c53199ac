SELECT revisions.position, revisions.body FROM lineage JOIN revisions
ON revisions.conversation = lineage.source AND revisions.position <= lineage.last_position
   AND revisions.key <= lineage.last_revision
WHERE lineage.conversation = $1 AND revisions.position BETWEEN $2 AND $3
ORDER BY lineage.step, revisions.key
