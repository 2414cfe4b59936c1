"""Between the nodes of a cluster: questions to owners, their answers, news of mailboxes, and who owns what."""
