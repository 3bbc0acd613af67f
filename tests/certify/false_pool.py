import contextlib
from attnflow.certify.checking.words import statement
def certificate(kind, claims, data):
    one={"format":1,"kind":kind,"statement":"","assumes":[],"claims":claims,"data":data,"enclosures":{}}
    with contextlib.suppress(Exception): one["statement"]=statement(kind,claims,data)
    return one
